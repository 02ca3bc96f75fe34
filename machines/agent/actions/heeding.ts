import type { Announcement } from '../announcements.js'
import type { AgentContext, StandingVerdict } from '../context.js'
import type { PendingCall, ToolResult } from '../results.js'
import { settleCall } from './transcript.js'

/** What a guard says, whoever wrote the guard. */
export interface Said extends StandingVerdict {
  action: 'nudge' | 'block' | 'halt'
  /** Which calls a block refuses. */
  refuses: (call: PendingCall) => boolean
}

/**
 * Acts on what guards say: a halt stands until the chart has led it somewhere, a block refuses calls, a nudge rides on
 * the next request.
 */
export function heed(
  context: AgentContext,
  said: readonly Said[],
  now: number,
  tell: (announcement: Announcement) => void,
): Pick<AgentContext, 'calls' | 'nudges' | 'verdict'> {
  let { calls } = context
  const nudges = [...context.nudges]
  let verdict: AgentContext['verdict'] = null
  for (const { action, refuses, ...finding } of said) {
    const { guard, evidence, message } = finding
    if (action === 'halt') verdict ??= standing(finding)
    else tell({ type: 'guardrail', guard, action, evidence, message })
    if (action === 'nudge') nudges.push(message)
    if (action === 'block') calls = refuse(calls, refuses, message, now, tell)
  }
  return { calls, nudges, verdict }
}

function standing({ guard, userGuard, evidence, message, onHalt }: StandingVerdict): StandingVerdict {
  return { guard, evidence, message, onHalt, ...(userGuard !== undefined && { userGuard }) }
}

function refuse(
  calls: PendingCall[],
  refuses: Said['refuses'],
  message: string,
  now: number,
  tell: (announcement: Announcement) => void,
): PendingCall[] {
  const result: ToolResult = { status: 'blocked', content: message, durationMs: 0 }
  return calls.filter(refuses).reduce((all, call) => settleCall(all, call.id, result, now, tell), calls)
}
