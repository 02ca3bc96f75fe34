import { UsageError } from '../base/errors.js'
import type { Run } from '../run/run.js'

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

/** What an answer says that comes twice, or too late. */
const late: ReadonlySet<string> = new Set(['unknown_call', 'already_answered', 'stale_answer', 'wrong_state'])

/**
 * Says these to a run. Whoever drives may do so twice: an answer that nothing waits for any more is no error.
 * @throws {UsageError} `invalid_input` for what is no answer
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
  const { fingerprint } = answer as { fingerprint?: string }
  const options = fingerprint === undefined ? undefined : { fingerprint }
  switch (answer.type) {
    case 'cancel':
      return run.cancel(answer.why)
    case 'resume':
      return run.resume()
    case 'steer':
      return run.steer(answer.text)
    case 'approve':
      return run.approve(answer.callId, answer.editedInput as never, options)
    case 'reject':
      return run.reject(answer.callId, answer.why, options)
    case 'toolOutput':
      return run.toolOutput(
        answer.callId,
        answer.isError ? new Error(String(answer.value)) : answer.value,
        options,
      )
    default:
      throw new UsageError(
        'invalid_input',
        'An answer has a type: cancel, resume, steer, approve, reject or toolOutput.',
        'answers',
      )
  }
}
