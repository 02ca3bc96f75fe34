import { fingerprintCall } from '../../../guards/lib/fingerprint.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { UsageError } from '../base/errors.js'
import { applyMessage } from '../run/apply-message.js'
import type { Run } from '../run/run.js'
import { checkMessage, isAnswer, type SessionMessage } from '../sessions/inbox/session-message.js'

/** A message for a resting session. */
export type SessionAnswer = Exclude<
  SessionMessage,
  { type: 'pause' | 'reply' | 'message' | 'grant' | 'revoke' }
>

const answerTypes: readonly SessionAnswer['type'][] = [
  'cancel',
  'resume',
  'steer',
  'approve',
  'reject',
  'toolOutput',
]

/**
 * Validates all answers before any is applied, because the run could otherwise continue with the first one before the
 * second fails. An answer must identify its call: a repeated answer could apply to a later call with the same id.
 * @throws {UsageError} `invalid_input`, or `unbound_answer` for an answer to a call without `fingerprint` or `at`
 */
export function checkAnswers(answers: readonly unknown[], at: number | undefined, by = 'runSession'): void {
  const checked = answers.map((answer, i) =>
    checkMessage(answer, { by: `${by}, answers[${i}]`, subject: 'answers', of: answerTypes }),
  )
  if (at !== undefined) return
  for (const [i, answer] of checked.entries()) {
    if (!isAnswer(answer) || answer.fingerprint !== undefined) continue
    const message =
      `${by}, answers[${i}]: a later call may have the same id as '${answer.callId}'. Pass the call's fingerprint from ` +
      'result.pending, or at: result.head.'
    throw new UsageError('unbound_answer', message, 'answers')
  }
}

const lateAnswerCodes: ReadonlySet<string> = new Set(
  'unknown_call already_answered stale_answer approval_expired wrong_state'.split(' '),
)

/** Ignores late answers, because requests may be repeated. `at` identifies the rest that the answers refer to. */
export function applyAnswers(run: Run, answers: readonly SessionAnswer[], at: number | undefined): void {
  for (const answer of answers) {
    const { context } = run.snapshot() as { context: AgentContext }
    const isUnbound = at === undefined && 'callId' in answer && answer.messageId === undefined
    if (isUnbound && wasAskedBefore(context, answer.callId)) continue
    try {
      applyMessage(run, answer)
    } catch (error) {
      if (!(error instanceof UsageError) || !lateAnswerCodes.has(error.code)) throw error
    }
  }
}

/** Whether the answer may be a duplicate, meant for an earlier call with the same id and arguments. */
function wasAskedBefore({ messages, calls, batchAt }: AgentContext, callId: string): boolean {
  const current = calls.find(({ id }) => id === callId)
  if (!current) return false
  return messages
    .slice(0, Math.max(0, batchAt))
    .some(
      (message) =>
        message.role === 'assistant' &&
        message.tool_calls?.some(
          ({ id, function: { name, arguments: text } }) =>
            id === callId &&
            name === current.name &&
            fingerprintCall(name, text) === fingerprintCall(name, current.arguments),
        ),
    )
}
