import { findDueTime } from './due-times.js'
import type { AgentContext } from './context.js'
import { listPendingCalls } from './questions.js'
import { type RunResult, isRestState } from './run-result.js'
import { maskMessages } from './mask-uncleared.js'

/**
 * The result of a run at any time. While the run works, it is a `RunInProgress`. The cast is safe because the machine
 * guarantees the fields of each state.
 */
export function toRunResult(context: AgentContext): RunResult {
  const state = context.state ?? 'RUNNING'
  const resumable = isRestState(state)
  const wakeAt = findDueTime(context)
  const outputProblem = resumable ? null : findOutputProblem(context)
  return {
    state,
    reason: context.reason ?? 'internal',
    output: context.output,
    messages: maskMessages(context),
    usage: context.usage.run,
    steps: context.steps,
    ...(context.error !== null && { error: context.error }),
    ...(outputProblem !== null && { outputProblem }),
    ...(state === 'WAITING_FOR_INPUT' && { pending: listPendingCalls(context) }),
    ...(wakeAt !== null && { wakeAt }),
    resumable,
    sessionId: context.sessionId,
    runId: context.runId,
  } as unknown as RunResult
}

/** Null if it has an output object, or if the agent has no output schema. */
export function findOutputProblem(context: AgentContext): string | null {
  const { features, response, reason, pendingAnswer, outputProblem } = context
  if (!features.structuredOutput) return null
  // The problem could reveal blocked or uncleared content.
  if (reason === 'shield' || pendingAnswer !== null) return noAnswerProblem
  return outputProblem ?? (response === 'answer' ? null : noAnswerProblem)
}

const noAnswerProblem =
  'The run ended without an answer that matches the output schema, so the output is the raw text.'
