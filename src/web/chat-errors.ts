import type { PendingCall } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'

/** Why a message is not said. */
export function messageChangedError(clientId: string): UsageError {
  return new UsageError(
    'message_changed',
    'This message was said before, in other words. What was said stays: say the new words in a new message.',
    clientId,
  )
}

export function alreadySentError(clientId: string): UsageError {
  return new UsageError(
    'already_said',
    'This message was answered before, and others came after it: ask for the history, and say something new.',
    clientId,
  )
}

export function runInProgressError(sessionId: string): UsageError {
  return new UsageError(
    'run_in_progress',
    'The answer to the message before is still under way: wait for it, or stop it, and say it again.',
    sessionId,
  )
}

export function answersPendingError(pending: readonly PendingCall[]): UsageError {
  const names = pending.map(({ name }) => name).join(', ')
  return new UsageError(
    'waiting_for_answers',
    `The answer before waits for a decision (${names}): approve or reject it first, or stop it.`,
    pending[0]?.callId,
  )
}
