import type { AgentContext } from '../../../machines/agent/context.js'
import type { UnansweredCall, PendingCall } from '../../../machines/agent/run-result.js'
import { isAnsweredBy } from '../../../machines/agent/sub-agent-questions.js'
import { findAnswerableCall, listAnswerableCalls } from '../../../machines/agent/to-result.js'
import { UsageError } from '../base/errors.js'
import { expectArgument, optionsRule } from '../base/values.js'

/** What an answer to a call may carry. */
export interface AnswerOptions {
  /** As `pending` and `approval_requested` have it. */
  fingerprint?: string | undefined
  /** As they have it, too: the same call, made again, is another one. */
  messageId?: string | undefined
}

/** A call by its id, or as `pending` and `approval_requested` tell of it: an answer is then for that very call. */
export type CallReference =
  | string
  | (Pick<UnansweredCall, 'callId' | 'fingerprint' | 'messageId'> & { name?: string })

/** The arguments that a person may give in place of the model's: the input type of the tool, or `unknown` when the tool is not known. */
export type EditOf<Tools, Call> = [Tools] extends [never]
  ? unknown
  : [OwnName<Call>] extends [never]
    ? unknown
    : Tools[OwnName<Call> & keyof Tools]

/** A sub-agent's tools go by names of their own. */
type OwnName<Call> = Call extends { name: infer Name; path?: never } ? Name : never

/** @throws {UsageError} `invalid_input` for what names no call */
export function parseAnswerTarget(
  call: CallReference,
  options: AnswerOptions = {},
): AnswerOptions & { callId: string } {
  expectArgument('The options of an answer', options, optionsRule)
  const { fingerprint, messageId } = options
  if (typeof call === 'string') return { callId: call, fingerprint, messageId }
  const named = (call ?? {}) as AnswerOptions & { callId?: unknown }
  if (typeof named.callId === 'string')
    return {
      callId: named.callId,
      fingerprint: fingerprint ?? named.fingerprint,
      messageId: messageId ?? named.messageId,
    }
  throw new UsageError(
    'invalid_input',
    "An answer names its call: pass its callId, or the call itself from result.pending or from the event 'approval_requested'.",
    'callId',
  )
}

/**
 * The call that waits for this answer, at a rest of the run or while other calls are carried out.
 * @throws {UsageError} `already_answered` for a second answer, `unknown_call` when no call of this id waits for one,
 * `stale_answer` when it is not the one that was meant
 */
export function getAwaitedCall(
  context: AgentContext | undefined,
  callId: string,
  needs: PendingCall['needs'],
  { fingerprint, messageId }: AnswerOptions = {},
): PendingCall {
  const asked = context && findAnswerableCall(context, callId, needs)
  if (asked === undefined) throw notAwaitedError(context, callId, needs)
  if (fingerprint !== undefined && fingerprint !== asked.fingerprint) {
    throw new UsageError(
      'stale_answer',
      `The answer to call '${callId}' was meant for other arguments. It asks now for ${asked.name}(${asked.arguments}): ask again.`,
      callId,
    )
  }
  if (messageId !== undefined && messageId !== asked.messageId) {
    throw new UsageError(
      'stale_answer',
      `The answer was meant for call '${callId}' of message ${messageId}. The model has made the same call again since, in ` +
        `message ${asked.messageId}: ask again.`,
      callId,
    )
  }
  return asked
}

function notAwaitedError(
  context: AgentContext | undefined,
  callId: string,
  needs: PendingCall['needs'],
): UsageError {
  const waiting = (context ? listAnswerableCalls(context) : []).filter((call) =>
    isAnsweredBy(call.needs, needs),
  )
  const others =
    waiting.length > 0
      ? `Waiting: ${waiting.map((call) => call.callId).join(', ')}.`
      : `The run is ${context?.state ?? 'RUNNING'} and no call waits for such an answer.`
  return context && wasAnswered(context, callId)
    ? new UsageError('already_answered', `Call '${callId}' has its answer already. ${others}`, callId)
    : new UsageError('unknown_call', `Call '${callId}' does not wait for this answer. ${others}`, callId)
}

/** A call of the batch at hand, or a question of a sub-agent in it, that is answered. */
function wasAnswered({ calls }: AgentContext, callId: string): boolean {
  return calls.some(({ id, needs, result, approved, questions = [] }) => {
    const isDone = needs !== 'nobody' && needs !== 'child' && result !== undefined
    if (id === callId) return isDone || approved === true
    return questions.some((question) => `${id}/${question.callId}` === callId && question.answer)
  })
}
