import type { PendingCall } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'
import { isObject } from '../core/base/values.js'
import type { InputPart } from '../core/models/media.js'
import { findCallReference } from '../web/approval-id.js'
import type { AnswerMessage } from '../core/sessions/inbox/session-message.js'
import { fitsCall } from '../web/call-answers.js'
import type { SessionView } from '../web/chat-service.js'
import type { IncomingMessage } from '../web/chat-turn.js'
import { invalidInputError } from '../web/error-response.js'
import type { PageFiles } from '../web/page-files.js'
import {
  anything,
  branchNumber,
  fields,
  flag,
  lenientText,
  list,
  object,
  oneOf,
  optional,
  refuseGrant,
  refuseSender,
  shortText,
  text,
  type ValueOf,
} from '../web/request-fields.js'
import { type CallNames, collectCallNames } from './agui-messages.js'
import { toInterruptId, toPauseId } from './approval-interrupts.js'

type Fields = Record<string, unknown>

const runAgentInput = fields({
  threadId: text,
  runId: shortText,
  messages: optional(list(object)),
  state: anything,
  resume: optional(
    list(fields({ interruptId: text, status: oneOf('resolved', 'cancelled'), payload: optional(object) })),
  ),
  forwardedProps: anything,
})

const mediaSource = fields({ type: anything, value: text, mimeType: lenientText })

type InterruptAnswer = NonNullable<ValueOf<typeof runAgentInput>['resume']>[number]

export type AgentInput = Awaited<ReturnType<typeof readInput>>

/**
 * Reads the last message, or the results of client calls at the end. The agent's options replace `tools` and `context`.
 * @throws {UsageError} `invalid_input`
 */
export async function readInput(body: Fields, files: PageFiles) {
  const { messages = [], resume = [], forwardedProps, ...ids } = runAgentInput(body, '')
  const last = messages.at(-1)
  const at = `messages[${messages.length - 1}]`
  /** The messages that the page shows; only their ids are compared. */
  const shown = messages.flatMap(({ id, role, subagentRunId: of }) =>
    typeof id === 'string' && typeof role === 'string'
      ? [{ id, role, ...(typeof of === 'string' && { subagentRunId: of }) }]
      : [],
  )
  const forwarded = isObject(forwardedProps) ? forwardedProps : {}
  refuseSender(body, '')
  refuseSender(forwarded, 'forwardedProps')
  /** The message to answer again, or the edited message. */
  const regenerateFrom = optional(shortText)(forwarded['regenerateFrom'], 'forwardedProps.regenerateFrom')
  const input = {
    ...ids,
    shown,
    message: null as IncomingMessage | null,
    resume,
    outputs: [] as readonly ReturnType<typeof readOutput>[],
    regenerateFrom,
    /** The branch that the page shows. */
    branch: optional(branchNumber)(forwarded['branch'], 'branch'),
  }
  // The last message is either the edited version of the earlier message, or still the previous answer.
  if (regenerateFrom !== undefined && (last?.['role'] !== 'user' || last['id'] !== regenerateFrom))
    return input
  if (last?.['role'] === 'user') return { ...input, message: await readMessage(last, at, files) }
  const from = messages.findLastIndex(({ role }) => role !== 'tool') + 1
  const outputs = messages.slice(from).map((message, i) => readOutput(message, `messages[${from + i}]`))
  if (outputs.length + resume.length > 0) return { ...input, outputs }
  throw invalidInputError('The last message must be a user message, or resume must contain answers.', at)
}

async function readMessage({ id, content }: Fields, at: string, files: PageFiles): Promise<IncomingMessage> {
  const clientId = shortText(id, `${at}.id`)
  const emptyError = (): UsageError =>
    invalidInputError(`${at} is empty. Add text or a file.`, `${at}.content`)
  if (typeof content === 'string') {
    if (content.trim() === '') throw emptyError()
    return { content, clientId }
  }
  if (!Array.isArray(content))
    throw invalidInputError(`${at}.content must be a string or a list of parts.`, `${at}.content`)
  const read = list(object)(content, `${at}.content`)
  const parts: InputPart[] = []
  // Sequential, so that the error names the first invalid part.
  for (const [i, part] of read.entries()) parts.push(await readPart(part, `${at}.content[${i}]`, files))
  if (parts.every((part) => part.type === 'text' && part.text.trim() === '')) throw emptyError()
  return { content: parts, clientId }
}

async function readPart(
  { type, text: words, source, metadata }: Fields,
  at: string,
  files: PageFiles,
): Promise<InputPart> {
  if (type === 'text') return { type, text: text(words, `${at}.text`) }
  if (type !== 'image' && type !== 'audio' && type !== 'video' && type !== 'document')
    throw invalidInputError(`${at}.type must be text, image, audio, video or document.`, `${at}.type`)
  const { type: kind, value, mimeType } = mediaSource(source, `${at}.source`)
  if (kind === 'file')
    return { type: 'file', file: { file_id: await files.readId(value, `${at}.source.value`) } }
  const isData = kind === 'data'
  if (!isData && (kind !== 'url' || /^data:/i.test(value)))
    throw invalidInputError(`${at}.source must be data, or an http: or https: address.`, `${at}.source`)
  const address = isData ? '' : files.readAddress(value, `${at}.source.value`)
  if (mimeType === undefined && (isData || type !== 'image'))
    throw invalidInputError(`${at}.source.mimeType is missing.`, `${at}.source.mimeType`)
  const data = isData ? `data:${String(mimeType)};base64,${value}` : address
  if (type === 'image') return { type: 'image_url', image_url: { url: data } }
  const { filename } = isObject(metadata) ? metadata : {}
  const named = typeof filename === 'string' && { filename }
  return { type: 'file', data, mediaType: String(mimeType), ...named }
}

function readOutput({ toolCallId, content, error }: Fields, at: string) {
  const isError = typeof error === 'string'
  return {
    toolCallId: text(toolCallId, `${at}.toolCallId`),
    content: text(isError ? error : content, `${at}.content`),
    isError,
  }
}

type PageAnswers =
  | { type: 'calls'; answers: readonly AnswerMessage[] }
  | { type: 'resume'; messages: number; steer: string | undefined }

/**
 * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer` for an id that is not open;
 * `waiting_for_answers` if an interrupt is not answered; `invalid_input`
 */
export function readAnswers(
  { messages, pending, state }: SessionView,
  { resume, outputs }: AgentInput,
): PageAnswers {
  const names = collectCallNames(messages)
  if (state === 'PAUSED') {
    const steer = readPauseAnswer(messages.length, resume, names)
    return { type: 'resume', messages: messages.length, steer }
  }
  const open = new Map(pending.map((call) => [names.getRequestName(call.callId), call]))
  const answers = resume.map((entry, i) => {
    const reference = findCallReference(entry.interruptId)
    const call = reference && open.get(reference.callId)
    if (!call || !fitsCall(reference, call)) throw notOpenError(entry.interruptId, open, names)
    return readAnswer(call, entry, `resume[${i}].payload`)
  })
  const answeredIds = new Set(answers.map(({ callId }) => callId))
  const unanswered = [...open].find(([, { callId, needs }]) => needs !== 'client' && !answeredIds.has(callId))
  if (unanswered) {
    const id = toInterruptId(...unanswered)
    throw new UsageError(
      'waiting_for_answers',
      `${unanswered[1].name} is also waiting for an answer. resume must answer every interrupt, including ${id}.`,
      id,
    )
  }
  const results = outputs.map(({ toolCallId, content: value, isError }): AnswerMessage => {
    const isAwaited = ({ callId, needs }: PendingCall): boolean =>
      needs === 'client' && names.getRequestName(callId) === toolCallId
    const call = pending.find(isAwaited)
    if (!call) throw notWaitingError(toolCallId, names)
    const { callId, fingerprint, messageId } = call
    return { type: 'toolOutput', callId, fingerprint, messageId, value, isError }
  })
  return { type: 'calls', answers: [...answers, ...results] }
}

function readAnswer(
  { callId, fingerprint, messageId, needs }: PendingCall,
  { status, payload = {} }: InterruptAnswer,
  at: string,
): AnswerMessage {
  refuseSender(payload, at)
  const target = { callId, fingerprint, messageId }
  const isCancelled = status === 'cancelled'
  if (needs === 'client') {
    const value = isCancelled ? 'The user cancelled the call.' : (payload['output'] ?? payload)
    return { type: 'toolOutput', ...target, value, isError: isCancelled }
  }
  if (needs === 'elicitation')
    return { type: 'toolOutput', ...target, value: isCancelled ? { action: 'cancel' } : payload }
  if (isCancelled) return { type: 'reject', ...target }
  refuseGrant(payload, at)
  const why = lenientText(payload['reason'], at)
  if (!flag(payload['approved'], `${at}.approved`)) return { type: 'reject', ...target, why }
  return { type: 'approve', ...target, why, editedInput: payload['editedArgs'] }
}

function readPauseAnswer(
  messages: number,
  resume: readonly InterruptAnswer[],
  names: CallNames,
): string | undefined {
  const [entry, ...more] = resume
  const id = toPauseId(messages)
  if (!entry || more.length > 0 || entry.interruptId !== id) {
    const other = resume.find(({ interruptId }) => interruptId !== id)
    throw notOpenError(other?.interruptId ?? '', new Map(), names)
  }
  if (entry.status === 'cancelled')
    throw invalidInputError(
      'resume[0].status must be resolved. To end the run, send a POST to its /stop address.',
      'resume[0].status',
    )
  const { steer } = entry.payload ?? {}
  return typeof steer === 'string' && steer.trim() !== '' ? steer : undefined
}

function notOpenError(id: string, open: ReadonlyMap<string, PendingCall>, names: CallNames): UsageError {
  const name = findCallReference(id)?.callId ?? ''
  const current = open.get(name)
  if (current === undefined) return notWaitingError(name === '' ? id : name, names)
  return new UsageError(
    'stale_answer',
    `The answer to ${name} is for outdated arguments. Show the call again, and answer ${toInterruptId(name, current)}.`,
    id,
  )
}

function notWaitingError(name: string, names: CallNames): UsageError {
  if (names.hasName(name) || name.startsWith('paused')) {
    const problem = `${name} is no longer waiting for an answer. Reload the thread.`
    return new UsageError('already_answered', problem, name)
  }
  const problem = `${JSON.stringify(name.slice(0, 100))} is not an interrupt's id.`
  return new UsageError('unknown_call', `${problem} Send the id back unchanged.`, name)
}
