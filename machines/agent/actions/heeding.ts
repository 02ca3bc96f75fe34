import type { EmittedEvent } from '../announcements.js'
import type { AgentContext, StandingVerdict } from '../context.js'
import type { BatchCall, ToolResult } from '../results.js'
import { settled } from './transcript.js'

/** What a guard says, whoever wrote the guard. */
export interface Said extends StandingVerdict {
  action: 'nudge' | 'block' | 'halt'
  /** Which calls a block refuses. */
  refuses: (call: BatchCall) => boolean
}

/**
 * Acts on what guards say: a halt stands until the chart has led it somewhere, a block refuses calls, a nudge rides on
 * the next request.
 */
export function heed(
  context: AgentContext,
  said: readonly Said[],
  now: number,
  tell: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls' | 'nudges' | 'verdict'> {
  let { calls } = context
  const nudges = [...context.nudges]
  let verdict: AgentContext['verdict'] = null
  for (const { action, refuses, ...finding } of said) {
    const { guard, rule, evidence, message } = finding
    if (action === 'halt') verdict ??= standing(finding)
    else tell({ type: 'guardrail', guard, action, ...(rule !== undefined && { rule }), evidence, message })
    if (action === 'nudge') nudges.push(message)
    if (action === 'block') calls = refuse(calls, refuses, finding, now, tell)
  }
  return { calls, nudges, verdict }
}

function standing({
  guard,
  userGuard,
  rule,
  evidence,
  message,
  onHalt,
  lastWords,
}: StandingVerdict): StandingVerdict {
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
function refuse(
  calls: readonly BatchCall[],
  refuses: Said['refuses'],
  { guard, message }: StandingVerdict,
  now: number,
  tell: (announcement: EmittedEvent) => void,
): BatchCall[] {
  const result: ToolResult = { status: 'blocked', content: message, durationMs: 0, refusedBy: guard }
  return calls.map((call) =>
    call.result === undefined && refuses(call) ? settled(call, result, now, tell) : call,
  )
}
