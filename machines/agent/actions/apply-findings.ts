import type { EmittedEvent } from '../announcements.js'
import type { AgentContext, GuardrailVerdict } from '../context.js'
import type { BatchCall, ToolResult } from '../batch-calls.js'
import { closeCall } from './update-transcript.js'

/** A finding of a built-in guard or of a user's guard. */
export interface AppliedFinding extends GuardrailVerdict {
  action: 'nudge' | 'block' | 'halt'
  /** Which calls a block refuses. */
  refuses: (call: BatchCall) => boolean
}

/**
 * Applies the findings of guards: a halt becomes the run's verdict, a block refuses calls, a nudge goes with the next
 * request.
 */
export function applyFindings(
  context: AgentContext,
  said: readonly AppliedFinding[],
  now: number,
  emit: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls' | 'nudges' | 'verdict'> {
  let { calls } = context
  const nudges = [...context.nudges]
  let verdict: AgentContext['verdict'] = null
  for (const { action, refuses, ...finding } of said) {
    const { guard, rule, evidence, message } = finding
    if (action === 'halt') verdict ??= pickVerdict(finding)
    else emit({ type: 'guardrail', guard, action, ...(rule !== undefined && { rule }), evidence, message })
    if (action === 'nudge') nudges.push(message)
    if (action === 'block') calls = blockCalls(calls, refuses, finding, now, emit)
  }
  return { calls, nudges, verdict }
}

function pickVerdict({
  guard,
  userGuard,
  rule,
  evidence,
  message,
  onHalt,
  lastWords,
}: GuardrailVerdict): GuardrailVerdict {
  return {
    guard,
    evidence,
    message,
    onHalt,
    ...(userGuard !== undefined && { userGuard }),
    ...(rule !== undefined && { rule }),
    ...(lastWords !== undefined && { lastWords }),
  }
}

/** One pass, however many calls there are. */
function blockCalls(
  calls: readonly BatchCall[],
  refuses: AppliedFinding['refuses'],
  { guard, message }: GuardrailVerdict,
  now: number,
  emit: (announcement: EmittedEvent) => void,
): BatchCall[] {
  const result: ToolResult = { status: 'blocked', content: message, durationMs: 0, refusedBy: guard }
  return calls.map((call) =>
    call.result === undefined && !call.unloaded && refuses(call) ? closeCall(call, result, now, emit) : call,
  )
}
