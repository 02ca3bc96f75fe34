import type { AgentContext } from './context.js'
import type { RunResult } from './outcome.js'

/** A run at rest, as its user sees it. */
export function resultOf(context: AgentContext): RunResult {
  const state = context.state ?? 'RUNNING'
  const pending = pendingCalls(context)
  return {
    state,
    reason: context.reason ?? 'internal',
    output: context.output,
    messages: context.messages,
    usage: context.usage.run,
    steps: context.steps,
    ...(context.error !== null && { error: context.error }),
    ...(pending.length > 0 && { pending }),
    resumable: state === 'PAUSED' || state === 'WAITING_FOR_INPUT',
    sessionId: context.sessionId,
    runId: context.runId,
  }
}

export function pendingCalls(context: AgentContext): NonNullable<RunResult['pending']> {
  if (context.state !== 'WAITING_FOR_INPUT') return []
  return context.calls.flatMap(({ id, name, arguments: text, needs, result }) =>
    result === undefined && needs !== 'nobody' ? [{ callId: id, name, arguments: text, needs }] : [],
  )
}
