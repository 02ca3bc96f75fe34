import type { Announcement } from './announcements.js'
import type { AgentContext } from './context.js'
import { openQuestions, questionId } from './delegation.js'
import { fingerprintOf } from './results.js'

/** What a run that waits for approvals asks: about its own calls, and those of its sub-agents. */
export function questionsOf({ calls }: AgentContext): Announcement[] {
  return calls.flatMap((call) => {
    const asked: Announcement[] = []
    if (call.result === undefined && call.needs === 'approval' && !call.unchecked) {
      asked.push({
        type: 'approval_requested',
        callId: call.id,
        name: call.name,
        arguments: call.arguments,
        fingerprint: fingerprintOf(call),
        ...(call.interrupted && { interrupted: true }),
        ...(call.hosted && { hosted: true }),
      })
    }
    for (const question of openQuestions(call)) {
      if (question.needs !== 'approval') continue
      const { needs: _needs, path = [], ...rest } = question
      const callId = questionId(call, question)
      asked.push({ ...rest, type: 'approval_requested', callId, path: [call.name, ...path] })
    }
    return asked
  })
}
