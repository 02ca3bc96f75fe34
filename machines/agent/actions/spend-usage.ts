import { getRemaining } from '../../../guards/budget.js'
import type { Emit, EmittedEvent } from '../announcements.js'
import type { AgentContext } from '../context.js'
import { getStepId } from '../messages.js'
import { type Usage, addUsage } from '../usage.js'
import { addToTotals, getBudgetTotals, isNearBudget, toBudgetLimits } from '../budget-totals.js'
import type { ChildQuestion } from '../batch-calls.js'
import { toAction } from '../update-action.js'
import { findChildUsage, isChildPaused } from '../questions.js'
import type { AgentMachineEvent } from '../machine-events.js'

interface Expense {
  callId?: string
  summary?: true
  /** Whether the run stopped the answer midway, so the provider reported no usage. */
  isCut?: true
}

/** Only this function updates the totals and emits `usage`, so the events add up to the usage of the result. */
export function spendUsage(
  context: AgentContext,
  step: Usage | null,
  emit: Emit,
  { callId, summary, isCut }: Expense = {},
): Partial<Pick<AgentContext, 'usage' | 'warnedOfBudget'>> {
  if (step === null) return {}
  // Sub-agents emit their own warnings.
  if (callId === undefined && !isCut) for (const warning of listBudgetWarnings(context, step)) emit(warning)
  const { usage } = addToTotals(context, step)
  const { run, session } = usage
  const stepId = summary ? `${getStepId(context)}.summary` : getStepId(context)
  emit({ type: 'usage', stepId, ...(callId !== undefined && { callId }), step, run, session })
  const hasWarned = warnNearBudget({ config: context.config, usage }, context.warnedOfBudget, emit)
  return { usage, ...(hasWarned && { warnedOfBudget: true }) }
}

/** Warnings about usage that the budget cannot count. Each warning is emitted once per run. */
function listBudgetWarnings({ config, usage }: AgentContext, { estimated, cost }: Usage): EmittedEvent[] {
  const { costLimit } = config.limits
  return [
    ...(estimated && !usage.run.estimated ? [missingUsageWarning] : []),
    ...(costLimit > 0 && cost === null && usage.run.cost !== null ? [unknownPriceWarning] : []),
  ]
}

const missingUsageWarning: EmittedEvent = {
  type: 'warning',
  code: 'missing_usage',
  message:
    'The provider reported no usage. It is estimated, or counted as zero with budget.onMissingUsage set to zero.',
}

const unknownPriceWarning: EmittedEvent = {
  type: 'warning',
  code: 'unknown_price',
  message: "The model's price is unknown, so limits.costLimit cannot stop this run. Set the price in prices.",
}

/** Emits the near-budget warning, at most once per session. */
function warnNearBudget(
  spent: Pick<AgentContext, 'config' | 'usage'>,
  hasWarned: boolean,
  emit: Emit,
): boolean {
  if (hasWarned || !isNearBudget(spent)) return false
  const { tokens, cost } = getRemaining(getBudgetTotals(spent), toBudgetLimits(spent.config))
  emit({
    type: 'budget_warning',
    message:
      'The budget is nearly used up. Raise limits.tokenBudget or limits.costLimit if the run needs more.',
    remainingTokens: tokens,
    remainingCost: cost,
  })
  return true
}

export const addChildUsage = toAction(spendForChild)

export function spendForChild(
  context: AgentContext,
  event: AgentMachineEvent,
  emit: Emit,
): Partial<AgentContext> | undefined {
  const added = findChildUsage(event)
  if (added === null || !('callId' in event)) return undefined
  const { callId } = event
  return {
    ...spendUsage(context, added, emit, { callId }),
    calls: context.calls.map((call) =>
      call.id === callId
        ? { ...call, childUsage: call.childUsage ? addUsage(call.childUsage, added) : added }
        : call,
    ),
  }
}

export const noteChildRest = toAction((context, event) => {
  if (event.type !== 'CHILD_WAITING') return undefined
  return {
    calls: context.calls.map((call) => {
      if (call.id !== event.callId || call.result !== undefined) return call
      const { started: _started, expiresAt: _time, wakeAt: _before, memo: _last, ...resting } = call
      const { wakeAt, memo } = event
      const questions = event.questions.map((one) => withFormerVotes(one, call.questions))
      const childState = { ...(wakeAt !== undefined && { wakeAt }), ...(memo !== undefined && { memo }) }
      return { ...resting, needs: 'child' as const, questions, ...childState }
    }),
  }
})

/** Only this run stores the votes, so they are carried over when a sub-agent repeats a question. */
function withFormerVotes(question: ChildQuestion, former: readonly ChildQuestion[] = []): ChildQuestion {
  const { approvals } =
    former.find(
      ({ callId, fingerprint, messageId, answer }) =>
        callId === question.callId &&
        fingerprint === question.fingerprint &&
        messageId === question.messageId &&
        answer === undefined,
    ) ?? {}
  return approvals ? { ...question, approvals } : question
}

export const resumeChildren = toAction((context) => ({
  calls: context.calls.map((call) => (isChildPaused(call) ? { ...call, needs: 'nobody' as const } : call)),
}))
