import { omitUndefined } from '../../../guards/lib/json.js'
import type { Emit } from '../announcements.js'
import type { AgentContext, GuardrailVerdict } from '../context.js'
import { type BatchCall, toResult } from '../batch-calls.js'
import { closeCall, closeOpenCalls, withInternalMessage } from './update-transcript.js'
import { resetGuard } from '../../../guards/state.js'
import { toAction } from '../update-action.js'
import { getEventTime } from '../machine-events.js'

export interface AppliedFinding extends GuardrailVerdict {
  action: 'nudge' | 'block' | 'halt'
  refuses: (call: BatchCall) => boolean
}

export function applyFindings(
  context: AgentContext,
  findings: readonly AppliedFinding[],
  now: number,
  emit: Emit,
): Pick<AgentContext, 'calls' | 'nudges' | 'verdict'> {
  let { calls } = context
  const nudges = [...context.nudges]
  let verdict: AgentContext['verdict'] = null
  for (const { action, refuses, ...finding } of findings) {
    const { guard, rule, evidence, message } = finding
    if (action === 'halt') verdict ??= finding
    else emit({ type: 'guardrail', guard, action, ...omitUndefined({ rule }), evidence, message })
    if (action === 'nudge') nudges.push(message)
    if (action === 'block') calls = blockCalls(calls, refuses, finding, now, emit)
  }
  return { calls, nudges, verdict }
}

/** Blocks the calls that a finding refuses. Uses a single pass because a batch can have thousands of calls. */
function blockCalls(
  calls: readonly BatchCall[],
  refuses: AppliedFinding['refuses'],
  { guard, message }: GuardrailVerdict,
  now: number,
  emit: Emit,
): BatchCall[] {
  const result = { ...toResult('blocked', message), refusedBy: guard }
  return calls.map((call) =>
    call.result === undefined && !call.unloaded && refuses(call) ? closeCall(call, result, now, emit) : call,
  )
}

export const announceHalt = toAction((context, event, emit) => {
  const { verdict } = context
  if (verdict === null) return undefined
  const { guard, rule, evidence, message, lastWords } = verdict
  emit({ type: 'guardrail', guard, action: 'halt', ...omitUndefined({ rule }), evidence, message })
  return {
    reason: guard,
    ...(lastWords !== undefined && { nudges: [lastWords] }),
    error: { code: guard, message, recoverable: verdict.onHalt === 'pause' },
    calls: closeOpenCalls(
      context.calls,
      `Not executed: a guardrail stopped the run (${guard}).`,
      getEventTime(event),
      emit,
    ),
  }
})

/** Some providers reject a request that ends with an assistant message, so an internal message follows it. */
export const forgetHalt = toAction((context, event) => {
  const { verdict } = context
  if (verdict === null) return { error: null, pausing: false }
  const why =
    verdict.guard === 'terminal_delegation'
      ? 'a sub-agent could not run. It may be able to now.'
      : 'it made no progress. Try another way.'
  const asksOn = event.type === 'RESUME' && context.messages.at(-1)?.role === 'assistant'
  return {
    verdict: null,
    error: null,
    pausing: false,
    nudges: [],
    guardrails: resetGuard(context.guardrails, verdict.guard, verdict.userGuard),
    ...(asksOn &&
      withInternalMessage(
        context,
        `Continue with the task. You were stopped because ${why}`,
        'resumed',
        getEventTime(event),
      )),
  }
})
