import type { PendingCall } from '../../machines/agent/run-result.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'

/** The reasons why a message is refused. */
export function alreadySentError(clientId?: string): UsageError {
  return new UsageError(
    'already_said',
    'This message was already answered, and other messages follow it: read the history, and send a new message.',
    clientId,
  )
}

export function runInProgressError(sessionId: string): UsageError {
  return new UsageError(
    'run_in_progress',
    'The previous answer is still under way: wait for it or stop it, then send the message again.',
    sessionId,
  )
}

export function answersPendingError(pending: readonly PendingCall[]): UsageError {
  const names = pending.map(({ name }) => name).join(', ')
  return new UsageError(
    'waiting_for_answers',
    `The previous answer waits for a decision (${names}): approve or reject it first, or stop it.`,
    pending[0]?.callId,
  )
}

export const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof StatewrightError && codes.includes(error.code)

export const isUnknownSession = (error: unknown): boolean => hasCode(error, 'unknown_session')

export const isSessionTaken = (error: unknown): boolean => hasCode(error, 'session_busy', 'unfinished_run')
