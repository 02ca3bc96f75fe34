import { getExpiry, isLate } from './approvals.js'
import type { BatchCall } from './batch-calls.js'
import type { AgentContext } from './context.js'
import { type AskedCall, listOpenQuestions } from './questions.js'

export function withExpiry(
  { expiry }: Pick<AgentContext, 'expiry'>,
  call: BatchCall,
  now: number,
): BatchCall {
  if (call.needs !== 'approval' || call.result !== undefined || call.expiresAt !== undefined) return call
  const { expiresMs = 0 } = getExpiry(call, expiry)
  return expiresMs > 0 ? { ...call, expiresAt: now + expiresMs } : call
}

function listExpiring({ calls }: Pick<AgentContext, 'calls'>): AskedCall[] {
  return calls.flatMap((call): AskedCall[] => {
    if (call.result !== undefined) return []
    if (!call.started && call.expiresAt !== undefined) return [{ call }]
    // A sub-agent that still works closes its own questions, but it cannot cancel this run.
    const questions = call.started
      ? (call.questions ?? []).filter((one) => one.answer === undefined && one.onExpiry === 'cancel')
      : listOpenQuestions(call)
    return questions.flatMap((question) => (question.expiresAt === undefined ? [] : [{ call, question }]))
  })
}

export function listLate(context: Pick<AgentContext, 'calls'>, now: number): AskedCall[] {
  return listExpiring(context).filter(({ call, question = call }) => isLate(question, now))
}

export function findNextExpiry(context: Pick<AgentContext, 'calls'>): number | null {
  const times = listExpiring(context).map(({ call, question = call }) => question.expiresAt ?? Infinity)
  return times.length === 0 ? null : Math.min(...times)
}

/** The time when a resting run continues without an answer, because its sleep ends or a question expires. */
export function findDueTime(context: Pick<AgentContext, 'state' | 'wakeAt' | 'calls'>): number | null {
  if (context.state === 'PAUSED') return context.wakeAt
  return context.state === 'WAITING_FOR_INPUT' ? findNextExpiry(context) : null
}
