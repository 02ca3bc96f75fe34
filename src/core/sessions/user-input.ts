import { joinTextParts } from '../base/text.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { NewMessage } from '../../../machines/agent/context.js'
import type { ContentPart, UserMessage } from '../../../machines/agent/messages.js'
import { UsageError } from '../base/errors.js'
import { type InputPart, toContentPart } from '../models/media.js'

/** What a user can say: a text, its parts (texts, images, audio, files), or several messages of them. */
export type UserInput = string | readonly InputPart[] | readonly UserInputMessage[]

/**
 * One message of the user.
 *
 * @example
 * const message: UserInputMessage = {
 *   content: [
 *     { type: 'text', text: 'What is this?' },
 *     { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
 *   ],
 * }
 * agent.run([message])
 */
export interface UserInputMessage {
  /** May be left out. */
  role?: 'user'
  /** A text, or parts: texts, images, audio, files. */
  content: string | readonly InputPart[]
  /** As the message is called where it comes from, 1 to 200 characters: kept as `data.clientId`, and sent to no model. */
  clientId?: string
}

/** The input as messages; a UsageError says what is wrong with it. */
export function toMessages(input: unknown): NewMessage[] {
  if (typeof input === 'string') return [{ content: checkNotBlank(input, 'input') }]
  if (!Array.isArray(input) || input.length === 0) {
    throw inputError('The input must be a text, or a non-empty list of parts or of user messages.', 'input')
  }
  if (input.every(isPart)) return [toMessage({ content: input }, 'input')]
  return input.map((message: unknown, i) => toMessage(message, `input[${i}]`))
}

/** What has a type and no content of its own is a part of a message. */
function isPart(item: unknown): boolean {
  const { type, role, content } = (item ?? {}) as { type?: unknown; role?: unknown; content?: unknown }
  return type !== undefined && role === undefined && content === undefined
}

export function toMessage(message: unknown, at: string): NewMessage {
  if (typeof message !== 'object' || message === null) throw inputError(`${at} must be a message object.`, at)
  const { role = 'user', content, clientId } = message as Record<'role' | 'content' | 'clientId', unknown>
  if (role !== 'user') {
    throw inputError(
      `${at}.role is '${String(role)}': only the user speaks here, and the run knows its earlier turns.`,
      at,
    )
  }
  const said = readUserContent(content, `${at}.content`)
  const read = typeof said === 'string' ? checkNotBlank(said, `${at}.content`) : copyAsJson(said, at)
  if (clientId === undefined) return { content: read }
  return { content: read, data: toClientData(readClientId(clientId, `${at}.clientId`), read) }
}

/** The client's id of a message, and a digest of its words as received: shields may change them. */
export function toClientData(
  clientId: string,
  content: NewMessage['content'],
): { clientId: string; digest: string } {
  // Short, so that redacted words are hard to guess from the log.
  return { clientId, digest: sha256(JSON.stringify([clientId, joinTextParts(content)])).slice(0, 8) }
}

/** Whether a stored message was received with these words. Messages without a client id have no digest. */
export function hasSameWords(
  content: UserInputMessage['content'],
  { content: stored, data }: Pick<UserMessage, 'content' | 'data'>,
): boolean {
  const received = readUserContent(content, 'content')
  const { clientId, digest, withheld } = data ?? {}
  if (typeof clientId !== 'string' || typeof digest !== 'string')
    return withheld === true || joinTextParts(received) === joinTextParts(stored)
  return toClientData(clientId, received).digest === digest
}

function readClientId(id: unknown, at: string): string {
  if (typeof id === 'string' && id.length > 0 && id.length <= 200) return id
  throw inputError(`${at} must be a text of 1 to 200 characters.`, at)
}

/** What a user said, checked. */
export function readUserContent(content: unknown, at: string): string | ContentPart[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content) || content.length === 0)
    throw inputError(`${at} must be a text or a non-empty list of parts.`, at)
  return content.map((part, i) => toContentPart(part, `${at}[${i}]`))
}

/** Copies a value by way of JSON, so that later changes by the caller have no effect. */
export function copyAsJson<Given>(given: Given, at: string): Given {
  try {
    return JSON.parse(JSON.stringify(given)) as Given
  } catch (cause) {
    const text = `${at} cannot be written as JSON: leave out BigInts, cycles and whatever else is no JSON.`
    throw new UsageError('invalid_input', text, at, { cause })
  }
}

function checkNotBlank(text: string, at: string): string {
  if (text.trim() === '') throw inputError(`${at} is empty: say something to the model.`, at)
  return text
}

export function inputError(message: string, at: string): UsageError {
  return new UsageError('invalid_input', message, at)
}
