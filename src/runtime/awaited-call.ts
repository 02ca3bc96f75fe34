import type { AgentContext } from '../../machines/agent/context.js'
import type { PendingAnswer } from '../../machines/agent/outcome.js'
import { pendingCalls } from '../../machines/agent/result-of.js'
import { UsageError } from '../errors.js'

/** What an answer to a call may carry. */
export interface AnswerOptions {
  /** As `pending` and `approval_requested` told it. */
  fingerprint?: string | undefined
}

/**
 * The call that waits for this answer.
 * @throws {UsageError} `unknown_call` when none of this id does, `stale_answer` when it is not the one that was meant
 */
export function awaitedCall(
  context: AgentContext | undefined,
  callId: string,
  needs: PendingAnswer['needs'],
  { fingerprint }: AnswerOptions = {},
): PendingAnswer {
  const waiting = (context ? pendingCalls(context) : []).filter((call) => call.needs === needs)
  const asked = waiting.find((call) => call.callId === callId)
  if (asked === undefined) {
    throw new UsageError(
      'unknown_call',
      waiting.length > 0
        ? `Call '${callId}' does not wait for this answer (never asked, or answered already). Waiting: ${waiting.map((call) => call.callId).join(', ')}.`
        : `Call '${callId}' does not wait for this answer: the run is ${context?.state ?? 'RUNNING'} and no call waits for one.`,
      callId,
    )
  }
  if (fingerprint !== undefined && fingerprint !== asked.fingerprint) {
    throw new UsageError(
      'stale_answer',
      `The answer to call '${callId}' was meant for other arguments. It asks now for ${asked.name}(${asked.arguments}): ask again.`,
      callId,
    )
  }
  return asked
}

/** Arguments that a person has changed, as JSON text. */
export function editedArguments(value: unknown, callId: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch {
    text = undefined
  }
  if (text !== undefined) return text
  throw new UsageError(
    'invalid_input',
    `The edited input of call '${callId}' cannot be written as JSON.`,
    callId,
  )
}
