import type { EmittedEvent } from './announcements.js'
import type { AgentContext } from './context.js'
import { getAskingMessageId, listOpenQuestions, toQuestionId } from './sub-agent-questions.js'
import { getCallFingerprint } from './batch-calls.js'

/** The open approval requests: for the run's own calls, and for those of its sub-agents. */
export function listApprovalRequests(context: AgentContext): EmittedEvent[] {
  return context.calls.flatMap((call) => {
    const asked: EmittedEvent[] = []
    if (call.result === undefined && call.needs === 'approval' && !call.unchecked) {
      asked.push({
        type: 'approval_requested',
        callId: call.id,
        name: call.name,
        arguments: call.arguments,
        fingerprint: getCallFingerprint(call),
        messageId: getAskingMessageId(context),
        ...(call.interrupted && { interrupted: true }),
        ...(call.hosted && { hosted: true }),
      })
    }
    for (const question of listOpenQuestions(call)) {
      if (question.needs !== 'approval') continue
      const { needs: _needs, path = [], ...rest } = question
      const callId = toQuestionId(call, question)
      const messageId = getAskingMessageId(context, question)
      asked.push({ ...rest, type: 'approval_requested', callId, messageId, path: [call.name, ...path] })
    }
    return asked
  })
}
