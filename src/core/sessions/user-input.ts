import { joinTextParts } from '../base/text.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { NewMessage } from '../../../machines/agent/context.js'
import type { ContentPart, UserMessage } from '../../../machines/agent/messages.js'
import { UsageError, inputError } from '../base/errors.js'
import { type InputPart, toContentPart } from '../models/media.js'

/** User input: a text, message parts (text, images, audio, files), or several messages. */
export type UserInput = string | readonly InputPart[] | readonly UserInputMessage[]

/**
 * One user message.
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
  /** The role of the message. Can be omitted. */
  role?: 'user'
  /** A text, or parts (text, images, audio, files). */
  content: string | readonly InputPart[]
  /** The message's id in the client, 1 to 200 characters. Stored as `data.clientId` and never sent to a model. */
  clientId?: string
}

export function toMessages(input: unknown): NewMessage[] {
  if (typeof input === 'string') return [{ content: checkNotBlank(input, 'input') }]
  if (!Array.isArray(input) || input.length === 0) {
    throw inputError('The input must be a string, or a non-empty list of parts or user messages.', 'input')
  }
  if (input.every(isPart)) return [toMessage({ content: input }, 'input')]
  return input.map((message: unknown, i) => toMessage(message, `input[${i}]`))
}

/** A part has a type but no content. */
function isPart(item: unknown): boolean {
  const { type, role, content } = (item ?? {}) as { type?: unknown; role?: unknown; content?: unknown }
  return type !== undefined && role === undefined && content === undefined
}

export function toMessage(message: unknown, at: string): NewMessage {
  if (typeof message !== 'object' || message === null) throw inputError(`${at} must be a message object.`, at)
  const { role = 'user', content, clientId } = message as Record<'role' | 'content' | 'clientId', unknown>
  if (role !== 'user') {
    const message = `${at}.role is '${String(role)}', but only user messages are allowed here. The run already has its earlier turns.`
    throw inputError(message, at)
  }
  const parsed = readUserContent(content, `${at}.content`)
  const read = typeof parsed === 'string' ? checkNotBlank(parsed, `${at}.content`) : copyAsJson(parsed, at)
  if (clientId === undefined) return { content: read }
  return { content: read, data: toClientData(readClientId(clientId, `${at}.clientId`), read) }
}

/** The client's id for a message, with a digest of the received text because shields may change the text. */
export function toClientData(
  clientId: string,
  content: NewMessage['content'],
): { clientId: string; digest: string } {
  // The digest is short, so that redacted text is hard to guess from the log.
  return { clientId, digest: sha256(JSON.stringify([clientId, joinTextParts(content)])).slice(0, 8) }
}

/** Whether a stored message was received with this text. Messages without a client id have no digest. */
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
  throw inputError(`${at} must be a string of 1 to 200 characters.`, at)
}

export function readUserContent(content: unknown, at: string): string | ContentPart[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content) || content.length === 0)
    throw inputError(`${at} must be a string or a non-empty list of parts.`, at)
  return content.map((part, i) => toContentPart(part, `${at}[${i}]`))
}

/** Later changes by the caller must have no effect. */
export function copyAsJson<Given>(value: Given, at: string): Given {
  try {
    return JSON.parse(JSON.stringify(value)) as Given
  } catch (cause) {
    const text = `${at} cannot be written as JSON. Remove BigInts, cycles and other values that JSON does not support.`
    throw new UsageError('invalid_input', text, at, { cause })
  }
}

function checkNotBlank(text: string, at: string): string {
  if (text.trim() === '') throw inputError(`${at} is empty. Add text or a file.`, at)
  return text
}
