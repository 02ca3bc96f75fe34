import type { AnyActorRef } from 'xstate'
import { getRemaining } from '../../../guards/budget.js'
import type { AgentEvent, EmittedEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext, AgentMachineEvent } from '../../../machines/agent/context.js'
import { haltsBatch } from '../../../machines/agent/questions.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { type Usage, addUsage } from '../../../machines/agent/usage.js'
import {
  addToTotals,
  findBudgetReason,
  getBudgetTotals,
  toBudgetLimits,
} from '../../../machines/agent/budget-totals.js'
import { describeError } from '../base/errors.js'
import { limitText } from '../base/text.js'
import type { RunnableCall } from '../tools/running-call.js'
import type { Delegate, DelegateRequest, Tool } from '../tools/tool.js'
import { type AgentParts, hasSharedBudgets, listRunBudgets } from '../live/agent-parts.js'
import type { Binding, EffectScope } from '../live/runtime.js'
import { getPoliciesBelow } from './prepare-options.js'
import { getChildSessionId } from '../sessions/agent-definition.js'
import { ChildRun, toChildResult } from '../live/child-run.js'

export interface BatchScope extends EffectScope {
  /** The agent's actor. (`self` is the actor of the batch.) */
  parent: AnyActorRef
  sendBack: (event: AgentMachineEvent) => void
}

export type SubAgentBatch = ReturnType<typeof createSubAgentBatch>

/** The sub-agents of one batch. They share the run's budget, and pause and stop together with the run. */
export function createSubAgentBatch(
  parts: Pick<AgentParts, 'budgets' | 'policies'>,
  { abort, parent, runtime, self, sendBack }: BatchScope,
) {
  let unfollow: (() => void) | undefined
  const getContext = (): AgentContext => (parent.getSnapshot() as { context: AgentContext }).context

  /** Runs a sub-agent's call. Returns null if the sub-agent rests and has reported its questions. Never rejects. */
  async function execute(
    tool: Tool,
    delegate: Delegate,
    input: unknown,
    call: RunnableCall,
  ): Promise<ToolResult | null> {
    unfollow ??= followPauses()
    const context = getContext()
    const { maxResultChars } = context.config.toolCalls
    const startedAt = runtime.clock.now()
    const getDuration = (): number => Math.max(0, runtime.clock.now() - startedAt)
    const failed = (message: string, status: ToolResult['status'] = 'error'): ToolResult => ({
      status,
      ...(status === 'error' && { errorKind: 'failed' as const }),
      durationMs: getDuration(),
      ...limitText(message, maxResultChars),
    })
    try {
      const child = runtime.children.get(call.id) ?? (await openChild(tool, delegate, input, call, failed))
      if (!(child instanceof ChildRun)) return child
      child.onUsage = () => reportUsage(call.id, child)
      // Reports the usage that a resumed sub-agent had before this listener was added.
      reportUsage(call.id, child)
      const { questions } = context.calls.find(({ id }) => id === call.id) ?? {}
      if (questions) await child.resumeWithAnswers(questions, context.pausing !== false)
      if (getContext().pausing) child.pause()
      const result = await nextRest(child)
      // The process that resumes the run reads the state and delivers unread answers.
      if (child.isReleasing && isAtRest(result)) return await waitForever()
      if (!isAtRest(result)) {
        if (result.resumable) child.cancel()
        return toChildResult(result, getDuration(), maxResultChars, context.features)
      }
      return reportRest(call.id, result.pending, result.state === 'PAUSED' ? result.wakeAt : undefined)
    } catch (error) {
      // The process that resumes the run opens the sub-agent.
      if (runtime.children.get(call.id)?.isReleasing) return waitForever()
      return failed(`The sub-agent '${tool.name}' could not run: ${describeError(error)}`)
    }
  }

  /** Waits until the sub-agent ends or rests. If a pause was withdrawn in the meantime, resumes the sub-agent. */
  async function nextRest(child: ChildRun): Promise<RunResult> {
    const result = await child.waitForRest()
    const isResumed = result.state === 'PAUSED' && !getContext().pausing && child.resumeWithdrawnPause()
    return isResumed ? nextRest(child) : result
  }

  async function openChild(
    tool: Tool,
    delegate: Delegate,
    input: unknown,
    call: RunnableCall,
    failed: (message: string, status?: ToolResult['status']) => ToolResult,
  ): Promise<ChildRun | ToolResult | null> {
    const context = getContext()
    const { config } = context
    const { binding } = runtime
    const { childUsage, questions } = context.calls.find(({ id }) => id === call.id) ?? {}
    const depth = (binding.depth ?? 0) + 1
    const maxDepth = Math.min(delegate.maxDepth, binding.maxDepth ?? Infinity)
    if (depth > maxDepth)
      return failed(
        `Not started: sub-agents may be nested only ${maxDepth} deep (maxDepth), and '${tool.name}' would be at level ${depth}. Do this yourself.`,
      )
    const left = getRemaining(getBudgetTotals(context), toBudgetLimits(config))
    if (Object.values(left).includes(0))
      return failed("Not executed: the run's budget is used up.", 'not_executed')
    const isBegun = childUsage !== undefined || (questions !== undefined && questions.length > 0)
    // A pending pause takes precedence.
    if (context.pausing && !isBegun) return reportRest(call.id, [])

    const child = new ChildRun(childUsage)
    runtime.children.set(call.id, child)
    const errand: DelegateRequest = {
      name: tool.name,
      message: delegate.messageFor(input),
      sessionId: getChildSessionId(context, call.id),
      parentSessionId: context.sessionId,
      isBegun,
      parent: self,
      actorId: `${tool.name} ${call.id}`,
      left,
      countCached: config.budget.countCached,
      askFirst: context.terms?.askFirst,
      requesters: context.requesters,
      now: runtime.time.now(),
      binding: {
        context: binding.context,
        depth,
        maxDepth,
        above: runtime.telemetry?.describeParent(call.id, tool.name, isWithheld()),
        prices: runtime.prices,
        ...(binding.store && { store: binding.store }),
        ...(binding.tags && { tags: binding.tags }),
        budgetsAbove: hasSharedBudgets(parts, runtime)
          ? listRunBudgets(parts, runtime, context.sessionId)
          : undefined,
        policiesAbove: getPoliciesBelow(parts, binding, tool.name),
        termsAbove: context,
      } satisfies Binding,
      isUnwanted: () => abort.aborted || child.isReleasing,
      watch: child.watch,
      onEvent: (event) => {
        if (parent.getSnapshot().status !== 'active') return
        if (context.features.resultShields && !isContentFree(event)) return
        runtime.emit(toChildEvent(event, call.id, tool.name))
      },
    }
    if (await child.begin(() => delegate.open(errand))) return child
    return failed(
      'Interrupted: the sub-agent was running when the process ended, and it has no log to resume from. Its outcome is unknown.',
      'interrupted',
    )
  }

  /** Whether shields of this run or of a parent screen call results before they are emitted. */
  const isWithheld = (): boolean =>
    getContext().features.resultShields || runtime.binding.above?.isUncleared === true

  function reportRest(callId: string, questions: RunResult['pending'] = [], wakeAt?: number): null {
    const wake = wakeAt !== undefined && { wakeAt }
    sendBack({ type: 'CHILD_WAITING', callId, questions, ...wake })
    return null
  }

  function reportUsage(callId: string, child: ChildRun): void {
    const usage = countUsage(child.takeUsage(), child)
    if (usage !== null) sendBack({ type: 'CHILD_USAGE', callId, usage })
  }

  function countUsage(usage: Usage | null, child: ChildRun | undefined): Usage | null {
    const context = getContext()
    const isSpent =
      usage !== null && findBudgetReason({ ...context, ...addToTotals(context, usage) }) !== null
    return isSpent ? addOthers(usage, child) : usage
  }

  /** Stops the other sub-agents before the run, so that their usage is counted. */
  function addOthers(usage: Usage | null, child: ChildRun | undefined): Usage | null {
    const others = runtime.stopChildren(child)
    return usage && others ? addUsage(usage, others) : (usage ?? others)
  }

  function followPauses(): () => void {
    const pauseAll = ({ context }: { context: AgentContext }): void => {
      if (context.state !== 'WAITING_FOR_TOOL') return
      for (const child of runtime.children.values()) {
        if (context.pausing) child.pause()
        else child.withdrawPause()
      }
    }
    const subscription = parent.subscribe(pauseAll as (snapshot: unknown) => void)
    return () => subscription.unsubscribe()
  }

  return {
    execute,
    takeUsage(callId: string, result: ToolResult): Usage | null {
      const child = runtime.children.get(callId)
      const usage = child?.takeUsage() ?? null
      return haltsBatch(getContext(), result) ? addOthers(usage, child) : countUsage(usage, child)
    },
    stop: (): void => unfollow?.(),
  }
}

const waitForever = (): Promise<never> => new Promise(() => undefined)

/** A sub-agent that a guard paused counts as ended for its caller. */
function isAtRest(result: RunResult): boolean {
  const { state, reason } = result
  if (state !== 'PAUSED') return state === 'WAITING_FOR_INPUT'
  return reason === 'paused' || reason === 'approval_expired' || result.wakeAt !== undefined
}

/** Converts an event from a sub-agent to an event of its parent. Each level extends the path. */
function toChildEvent(
  event: Extract<EmittedEvent, { type: 'child_event' }>['event'],
  callId: string,
  name: string,
): EmittedEvent {
  if (event.type !== 'child_event') return { type: 'child_event', callId, path: [name], event }
  return { ...event, callId: `${callId}/${event.callId}`, path: [name, ...event.path] }
}

/** The types of events without content from a model, a tool or a person. */
const contentFree: ReadonlySet<AgentEvent['type']> = new Set([
  'run_started',
  'state_changed',
  'usage',
  'budget_warning',
  'context_fitted',
  'tools_loaded',
  'handed_off',
  'step_prepared',
  'run_ended',
  'message_queued',
  'message_dequeued',
  'waiting_for_slot',
])

/** The sub-agent's answer is the result of its call, which is screened when the call ends. */
function isContentFree(event: AgentEvent): boolean {
  return contentFree.has(event.type === 'child_event' ? event.event.type : event.type)
}
