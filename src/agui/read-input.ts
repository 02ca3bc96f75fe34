import { UsageError } from '../core/base/errors.js'
import type { InputPart } from '../core/models/media.js'
import { readBranch } from '../web/request-handler.js'
import type { IncomingMessage } from '../web/incoming-message.js'
import type { PageFiles } from '../web/page-files.js'

type Fields = Record<string, unknown>

/** A page's answer to an interrupt. */
export interface InterruptAnswer {
  interruptId: string
  isAbandoned: boolean
  payload: Fields
  /** Its place in the request, for error messages. */
  at: string
}

/** The result of a call that the page executed. */
export interface PageOutput {
  toolCallId: string
  content: string
  isError: boolean
}

/** A page's request. */
export interface AgentInput {
  threadId: string
  runId: string
  /** The messages that the page shows: only their ids are compared. */
  shown: readonly { id: string; role: string; subagentRunId?: string }[]
  state: unknown
  /** The last message, when it is the user's. */
  message: IncomingMessage | null
  resume: readonly InterruptAnswer[]
  outputs: readonly PageOutput[]
  /** The message that is answered once more, or whose edit is: `forwardedProps.regenerateFrom`. */
  regenerateFrom: string | undefined
  /** The branch that the page shows: `forwardedProps.branch`. */
  branch: number | undefined
}

/**
 * Reads a `RunAgentInput`. Only the last message is read, or the results of client calls at the end: earlier messages are in
 * the log. The agent's own options decide what it may do, so `tools` and `context` are not read, and of `forwardedProps` only
 * `regenerateFrom` and `branch`.
 *
 * @throws {UsageError} `invalid_input`, naming the place
 */
export async function readInput(
  { threadId, runId, messages = [], state, resume = [], forwardedProps }: Fields,
  files: PageFiles,
): Promise<AgentInput> {
  if (typeof threadId !== 'string') throw invalidInputError('threadId must be a text.', 'threadId')
  if (!isShortText(runId)) throw invalidInputError('runId must be a text of 1 to 200 characters.', 'runId')
  if (!Array.isArray(messages)) throw invalidInputError('messages must be a list.', 'messages')
  if (!Array.isArray(resume)) throw invalidInputError('resume must be a list.', 'resume')
  const read = messages.map((message: unknown, i) => expectFields(message, `messages[${i}]`))
  const resumed = resume.map((entry: unknown, i) =>
    readInterruptAnswer(expectFields(entry, `resume[${i}]`), `resume[${i}]`),
  )
  const last = read.at(-1)
  const at = `messages[${read.length - 1}]`
  const shown = read.flatMap(({ id, role, subagentRunId: of }) =>
    typeof id === 'string' && typeof role === 'string'
      ? [{ id, role, ...(typeof of === 'string' && { subagentRunId: of }) }]
      : [],
  )
  const { regenerateFrom, branch } = readBranching(forwardedProps)
  const input = { threadId, runId, shown, state, resume: resumed, regenerateFrom, branch: readBranch(branch) }
  // Its last message is the edit of that one, or is still the former answer.
  if (regenerateFrom !== undefined && (last?.['role'] !== 'user' || last['id'] !== regenerateFrom))
    return { ...input, message: null, outputs: [] }
  if (last?.['role'] === 'user') return { ...input, message: await readMessage(last, at, files), outputs: [] }
  const from = read.findLastIndex(({ role }) => role !== 'tool') + 1
  const outputs = read.slice(from).map((message, i) => readOutput(message, `messages[${from + i}]`))
  if (outputs.length + resumed.length > 0) return { ...input, message: null, outputs }
  throw invalidInputError('The last message must be the user’s, or resume must have answers.', at)
}

function readBranching(forwarded: unknown): { regenerateFrom: string | undefined; branch: unknown } {
  const isGiven = typeof forwarded === 'object' && forwarded !== null
  const { regenerateFrom, branch } = isGiven ? (forwarded as Fields) : {}
  if (regenerateFrom === undefined || isShortText(regenerateFrom)) return { regenerateFrom, branch }
  const at = 'forwardedProps.regenerateFrom'
  throw invalidInputError(`${at} must be the id of a message, a text of 1 to 200 characters.`, at)
}

async function readMessage({ id, content }: Fields, at: string, files: PageFiles): Promise<IncomingMessage> {
  if (!isShortText(id)) throw invalidInputError(`${at}.id must be a text of 1 to 200 characters.`, `${at}.id`)
  if (typeof content === 'string') {
    if (content.trim() === '')
      throw invalidInputError(`${at} is empty: it needs a text or a file.`, `${at}.content`)
    return { content, clientId: id }
  }
  if (!Array.isArray(content))
    throw invalidInputError(`${at}.content must be a text or a list of parts.`, `${at}.content`)
  const places = content.map((part: unknown, i) => {
    const place = `${at}.content[${i}]`
    return { part: expectFields(part, place), place }
  })
  const parts: InputPart[] = []
  // One after the other, so that the error names the first invalid part.
  for (const { part, place } of places) parts.push(await readPart(part, place, files))
  if (parts.length === 0)
    throw invalidInputError(`${at} is empty: it needs a text or a file.`, `${at}.content`)
  return { content: parts, clientId: id }
}

async function readPart(
  { type, text, source, metadata }: Fields,
  at: string,
  files: PageFiles,
): Promise<InputPart> {
  if (type === 'text') {
    if (typeof text === 'string') return { type, text }
    throw invalidInputError(`${at}.text must be a text.`, `${at}.text`)
  }
  if (type !== 'image' && type !== 'audio' && type !== 'video' && type !== 'document')
    throw invalidInputError(`${at}.type must be text, image, audio, video or document.`, `${at}.type`)
  const { type: kind, value, mimeType } = expectFields(source, `${at}.source`)
  if (typeof value !== 'string')
    throw invalidInputError(`${at}.source.value must be a text.`, `${at}.source.value`)
  if (kind === 'file')
    return { type: 'file', file: { file_id: await files.readId(value, `${at}.source.value`) } }
  const isData = kind === 'data'
  if (!isData && (kind !== 'url' || /^data:/i.test(value)))
    throw invalidInputError(`${at}.source must be data, or an address with http: or https:.`, `${at}.source`)
  const address = isData ? '' : files.readAddress(value, `${at}.source.value`)
  if (typeof mimeType !== 'string' && (isData || type !== 'image'))
    throw invalidInputError(`${at}.source.mimeType must say what it is.`, `${at}.source.mimeType`)
  const data = isData ? `data:${String(mimeType)};base64,${value}` : address
  if (type === 'image') return { type: 'image_url', image_url: { url: data } }
  const { filename } = typeof metadata === 'object' && metadata !== null ? (metadata as Fields) : {}
  return {
    type: 'file',
    data,
    mediaType: String(mimeType),
    ...(typeof filename === 'string' && { filename }),
  }
}

function readInterruptAnswer({ interruptId, status, payload }: Fields, at: string): InterruptAnswer {
  if (typeof interruptId !== 'string')
    throw invalidInputError(`${at}.interruptId must be a text.`, `${at}.interruptId`)
  if (status !== 'resolved' && status !== 'cancelled')
    throw invalidInputError(`${at}.status must be resolved or cancelled.`, `${at}.status`)
  const given = payload === undefined ? {} : expectFields(payload, `${at}.payload`)
  return { interruptId, isAbandoned: status === 'cancelled', payload: given, at }
}

function readOutput({ toolCallId, content, error }: Fields, at: string): PageOutput {
  if (typeof toolCallId !== 'string')
    throw invalidInputError(`${at}.toolCallId must be a text.`, `${at}.toolCallId`)
  const isError = typeof error === 'string'
  const said = isError ? error : content
  if (typeof said === 'string') return { toolCallId, content: said, isError }
  throw invalidInputError(`${at}.content must be a text.`, `${at}.content`)
}

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 200
}

function expectFields(value: unknown, at: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw invalidInputError(`${at} must be an object.`, at)
}

export function invalidInputError(message: string, at: string): UsageError {
  return new UsageError('invalid_input', message, at)
}
