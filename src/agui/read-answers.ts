import type { PendingCall } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'
import { findCallReference } from '../web/approval-id.js'
import { type CallAnswer, isMeant } from '../web/call-answers.js'
import type { SessionView } from '../web/chat-service.js'
import { toInterruptId, toPauseId } from './approval-interrupts.js'
import { type CallNames, collectCallNames } from './agui-messages.js'
import { invalidInputError, type PageOutput, type AgentInput, type InterruptAnswer } from './read-input.js'

/** The answers of a page: to pending calls, or to a pause. */
export type PageAnswers =
  | { type: 'calls'; answers: readonly CallAnswer[] }
  | { type: 'goOn'; messages: number; steer: string | undefined }

/**
 * Matches the answers of a page with the open interrupts. Each interrupt must be answered by its own id.
 *
 * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer` for an id that is not open;
 * `waiting_for_answers` when an interrupt is not answered; `invalid_input`
 */
export function readAnswers({ messages, pending, state }: SessionView, input: AgentInput): PageAnswers {
  const { resume, outputs } = input
  const names = collectCallNames(messages)
  if (state === 'PAUSED')
    return { type: 'goOn', messages: messages.length, steer: readPauseAnswer(messages.length, resume, names) }
  const asked = new Map(pending.map((call) => [names.getQuestionName(call.callId), call]))
  const answers = resume.map((entry) => {
    const reference = findCallReference(entry.interruptId)
    const call = reference && asked.get(reference.callId)
    if (!call || !isMeant(reference, call)) throw notAskedError(entry.interruptId, asked, names)
    return readAnswer(call, entry)
  })
  const answeredIds = new Set(answers.map(({ callId }) => callId))
  const unanswered = [...asked].find(
    ([, { callId, needs }]) => needs !== 'client' && !answeredIds.has(callId),
  )
  if (unanswered) {
    const id = toInterruptId(...unanswered)
    throw new UsageError(
      'waiting_for_answers',
      `${unanswered[1].name} waits for an answer, too: resume must answer every interrupt, including ${id}.`,
      id,
    )
  }
  return {
    type: 'calls',
    answers: [...answers, ...outputs.map((output) => readOutput(output, pending, names))],
  }
}

function readAnswer(call: PendingCall, { isAbandoned, payload, at }: InterruptAnswer): CallAnswer {
  const { callId, fingerprint, messageId, needs } = call
  const target = { callId, fingerprint, messageId }
  if (needs === 'client') {
    const value = isAbandoned ? 'The user has abandoned it.' : (payload['output'] ?? payload)
    return { type: 'toolOutput', ...target, value, isError: isAbandoned }
  }
  if (needs === 'elicitation') {
    const value = isAbandoned ? { action: 'cancel' } : payload
    return { type: 'toolOutput', ...target, value }
  }
  const { approved, editedArgs, reason } = payload
  if (isAbandoned) return { type: 'reject', ...target }
  if (typeof approved !== 'boolean')
    throw invalidInputError(`${at}.payload.approved must be true or false.`, `${at}.payload.approved`)
  if (!approved) {
    return { type: 'reject', ...target, ...(typeof reason === 'string' && { why: reason }) }
  }
  return {
    type: 'approve',
    ...target,
    ...(editedArgs !== undefined && { editedInput: editedArgs }),
  }
}

function readOutput(
  { toolCallId, content, isError }: PageOutput,
  pending: readonly PendingCall[],
  names: CallNames,
): CallAnswer {
  const call = pending.find(
    ({ callId, needs }) => needs === 'client' && names.getQuestionName(callId) === toolCallId,
  )
  if (!call) throw notWaitingError(toolCallId, names)
  const { callId, fingerprint, messageId } = call
  return { type: 'toolOutput', callId, fingerprint, messageId, value: content, isError }
}

function readPauseAnswer(
  messages: number,
  resume: readonly InterruptAnswer[],
  names: CallNames,
): string | undefined {
  const [entry, ...more] = resume
  const id = toPauseId(messages)
  if (!entry || more.length > 0 || entry.interruptId !== id) {
    throw notAskedError(
      resume.find(({ interruptId: given }) => given !== id)?.interruptId ?? '',
      new Map(),
      names,
    )
  }
  if (entry.isAbandoned)
    throw invalidInputError(
      `${entry.at}.status must be resolved: to end a run, use its address with /stop.`,
      `${entry.at}.status`,
    )
  const { steer } = entry.payload
  return typeof steer === 'string' && steer.trim() !== '' ? steer : undefined
}

function notAskedError(id: string, asked: ReadonlyMap<string, PendingCall>, names: CallNames): UsageError {
  const name = findCallReference(id)?.callId ?? ''
  const other = asked.get(name)
  if (other !== undefined) {
    return new UsageError(
      'stale_answer',
      `The answer to ${name} is for other arguments than the current ones: show the call again, and answer ${toInterruptId(name, other)}.`,
      id,
    )
  }
  return notWaitingError(name === '' ? id : name, names)
}

function notWaitingError(name: string, names: CallNames): UsageError {
  return names.hasName(name) || name.startsWith('paused')
    ? new UsageError(
        'already_answered',
        `${name} does not wait for an answer any more: read the thread again.`,
        name,
      )
    : new UsageError(
        'unknown_call',
        `${JSON.stringify(name.slice(0, 100))} is not the id of an interrupt: send the id back unchanged.`,
        name,
      )
}
