import { omitUndefined } from '../../../guards/lib/json.js'
import { getRemaining } from '../../../guards/budget.js'
import type { Emit } from '../announcements.js'
import type { AgentContext, AgentMachineEvent } from '../context.js'
import { getStepId } from '../messages.js'
import { type Usage, addUsage } from '../usage.js'
import { addToTotals, getBudgetTotals, isNearBudget, toBudgetLimits } from '../budget-totals.js'
import type { ChildQuestion } from '../batch-calls.js'
import { toAction, toActionOn } from '../update-action.js'
import { findChildUsage, isChildPaused } from '../questions.js'

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
  if (callId === undefined && !isCut) warnOfUncounted(context, step, emit)
  const { usage } = addToTotals(context, step)
  const { run, session } = usage
  const stepId = summary ? `${getStepId(context)}.summary` : getStepId(context)
  emit({ type: 'usage', stepId, step, run, session, ...omitUndefined({ callId }) })
  const spent = { config: context.config, usage }
  if (context.warnedOfBudget || !isNearBudget(spent)) return { usage }
  const { tokens, cost } = getRemaining(getBudgetTotals(spent), toBudgetLimits(spent.config))
  emit({
    type: 'budget_warning',
    message:
      'The budget is nearly used up. Raise limits.tokenBudget or limits.costLimit if the run needs more.',
    remainingTokens: tokens,
    remainingCost: cost,
  })
  return { usage, warnedOfBudget: true }
}

/** Warns, once per run, of usage that the budget cannot count. */
function warnOfUncounted({ config, usage }: AgentContext, { estimated, cost }: Usage, emit: Emit): void {
  const warn = (code: string, message: string): void => emit({ type: 'warning', code, message })
  if (estimated && !usage.run.estimated)
    warn(
      'missing_usage',
      'The provider reported no usage. It is estimated, or counted as zero with budget.onMissingUsage set to zero.',
    )
  if (config.limits.costLimit > 0 && cost === null && usage.run.cost !== null)
    warn(
      'unknown_price',
      "The model's price is unknown, so limits.costLimit cannot stop this run. Set the price in prices.",
    )
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

export const noteChildRest = toActionOn('CHILD_WAITING', (context, event) => ({
  calls: context.calls.map((call) => {
    if (call.id !== event.callId || call.result !== undefined) return call
    const { started: _started, expiresAt: _time, wakeAt: _before, memo: _last, ...resting } = call
    const { wakeAt, memo } = event
    const questions = event.questions.map((one) => withFormerVotes(one, call.questions))
    return { ...resting, needs: 'child' as const, questions, ...omitUndefined({ wakeAt, memo }) }
  }),
}))

/** Only this run stores the votes, so they are carried over when a sub-agent repeats a question. */
function withFormerVotes(question: ChildQuestion, former: readonly ChildQuestion[] = []): ChildQuestion {
  const keys = ['callId', 'fingerprint', 'messageId'] as const
  const same = former.find((one) => !one.answer && keys.every((key) => one[key] === question[key]))
  return same?.approvals ? { ...question, approvals: same.approvals } : question
}

export const resumeChildren = toAction((context) => ({
  calls: context.calls.map((call) => (isChildPaused(call) ? { ...call, needs: 'nobody' as const } : call)),
}))
