import type { NewMessage } from '../../../machines/agent/context.js'
import type { ContentPart } from '../../../machines/agent/messages.js'
import { UsageError } from '../base/errors.js'

/**
 * What a user can say: a text, or messages with text, image, audio and file parts.
 *
 * @example
 * const input: UserInput = [{ content: 'Look at this.' }, { content: [{ type: 'text', text: 'And at this.' }] }]
 */
export type UserInput = string | readonly UserInputMessage[]

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
  content: string | ContentPart[]
}

/** Each kind of part, and where its payload is. */
const payloads: Record<ContentPart['type'], (part: Record<string, unknown>) => unknown> = {
  text: (part) => part['text'],
  image_url: (part) => (part['image_url'] as { url?: unknown } | undefined)?.url,
  input_audio: (part) => (part['input_audio'] as { data?: unknown } | undefined)?.data,
  file: (part) => {
    const file = part['file'] as { file_data?: unknown; file_id?: unknown } | undefined
    return file?.file_data ?? file?.file_id
  },
}

/** The input as messages; a UsageError says what is wrong with it. */
export function toMessages(input: unknown): NewMessage[] {
  if (typeof input === 'string') return [{ content: nonEmpty(input, 'input') }]
  if (!Array.isArray(input) || input.length === 0) {
    throw bad('The input must be a text or a non-empty list of user messages.', 'input')
  }
  return input.map((message: unknown, i) => toMessage(message, `input[${i}]`))
}

export function toMessage(message: unknown, at: string): NewMessage {
  if (typeof message !== 'object' || message === null) throw bad(`${at} must be a message object.`, at)
  const { role = 'user', content } = message as { role?: unknown; content?: unknown }
  if (role !== 'user') {
    throw bad(
      `${at}.role is '${String(role)}': only the user speaks here, and the run knows its earlier turns.`,
      at,
    )
  }
  const said = readContent(content, `${at}.content`)
  return { content: typeof said === 'string' ? nonEmpty(said, `${at}.content`) : plainCopy(said, at) }
}

/** What a user said, checked. */
export function readContent(content: unknown, at: string): string | ContentPart[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content) || content.length === 0)
    throw bad(`${at} must be a text or a non-empty list of parts.`, at)
  for (const [i, part] of content.entries()) checkPart(part, `${at}[${i}]`)
  return content as ContentPart[]
}

/** What somebody gave, as the JSON that it is written as, without ties to whoever holds it. */
export function plainCopy<Given>(given: Given, at: string): Given {
  try {
    return JSON.parse(JSON.stringify(given)) as Given
  } catch (cause) {
    const text = `${at} cannot be written as JSON: leave out BigInts, cycles and whatever else is no JSON.`
    throw new UsageError('invalid_input', text, at, { cause })
  }
}

function checkPart(part: unknown, at: string): void {
  const type = typeof part === 'object' && part !== null ? (part as { type?: unknown }).type : undefined
  if (typeof type !== 'string' || !Object.hasOwn(payloads, type)) {
    throw bad(`${at}.type must be one of ${Object.keys(payloads).join(', ')}.`, at)
  }
  const payload = payloads[type as ContentPart['type']](part as Record<string, unknown>)
  if (typeof payload !== 'string')
    throw bad(`${at} has the type ${type}, but no ${type} in it that can be sent.`, at)
}

function nonEmpty(text: string, at: string): string {
  if (text.trim() === '') throw bad(`${at} is empty: say something to the model.`, at)
  return text
}

export function bad(message: string, at: string): UsageError {
  return new UsageError('invalid_input', message, at)
}
