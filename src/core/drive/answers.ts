import { UsageError } from '../base/errors.js'
import { outputOf } from '../run/client-output.js'
import type { Run } from '../run/run.js'
import { checkedMessage } from '../sessions/inbox/message.js'

/**
 * What is said to a session at its rest.
 *
 * @example
 * const answers: DriveAnswer[] = [{ type: 'approve', callId: 'call_1' }, { type: 'reject', callId: 'call_2', why: 'Too much.' }]
 */
export type DriveAnswer =
  | { type: 'cancel'; why?: string }
  | { type: 'resume' }
  | { type: 'steer'; text: string }
  | { type: 'approve'; callId: string; fingerprint?: string; editedInput?: unknown }
  | { type: 'reject'; callId: string; fingerprint?: string; why?: string }
  | { type: 'toolOutput'; callId: string; fingerprint?: string; value: unknown; isError?: boolean }

const types: readonly DriveAnswer['type'][] = ['cancel', 'resume', 'steer', 'approve', 'reject', 'toolOutput']

/**
 * All of them are looked at before any is said: a run that goes on with the first would have nobody who drives it when
 * the second is none.
 * @throws {UsageError} `invalid_input` for what is no answer
 */
export function checkAnswers(answers: readonly unknown[]): void {
  answers.forEach((answer, i) =>
    checkedMessage(answer, { by: `drive, answers[${i}]`, subject: 'answers', of: types }),
  )
}

/** What an answer says that comes twice, or too late. */
const late: ReadonlySet<string> = new Set(['unknown_call', 'already_answered', 'stale_answer', 'wrong_state'])

/**
 * Says these to a run. Whoever drives may do so twice: an answer that nothing waits for any more is no error.
 * @throws {UsageError} `invalid_input` for an edit that does not fit
 */
export function say(run: Run, answers: readonly DriveAnswer[]): void {
  for (const answer of answers) {
    try {
      sayOne(run, answer)
    } catch (error) {
      if (!(error instanceof UsageError) || !late.has(error.code)) throw error
    }
  }
}

function sayOne(run: Run, answer: DriveAnswer): void {
  switch (answer.type) {
    case 'cancel':
      return run.cancel(answer.why)
    case 'resume':
      return run.resume()
    case 'steer':
      return run.steer(answer.text)
    case 'approve':
      return run.approve(answer.callId, answer.editedInput as never, answer)
    case 'reject':
      return run.reject(answer.callId, answer.why, answer)
    default:
      return run.toolOutput(answer.callId, outputOf(answer), answer)
  }
}
