import type { NewMessage } from '../../../machines/agent/context.js'
import { UsageError } from '../base/errors.js'
import { formatSnippets } from '../memory/retrieved-text.js'

/** A document that goes with what the user says; `loadAttachment` of `statewright/memory` reads one. */
export interface RunAttachment {
  /** Where it comes from, for people and the model: a file name, a URL. */
  name: string
  /** All of its text. */
  text: string
}

/**
 * The user's last message with its documents: marked as data, so that nothing in them reads like the user's own words.
 */
export function withAttachments(messages: NewMessage[], attachments: unknown): NewMessage[] {
  const last = messages.at(-1)
  if (attachments === undefined || last === undefined) return messages
  const documents = checkAttachments(attachments).map(({ name, text }) => ({ source: name, text }))
  if (documents.length === 0) return messages
  const data = formatSnippets(documents, { maxChars: Infinity })
  const content =
    typeof last.content === 'string'
      ? `${last.content}\n\n${data}`
      : [...last.content, { type: 'text' as const, text: data }]
  return [...messages.slice(0, -1), { ...last, content }]
}

function checkAttachments(attachments: unknown): RunAttachment[] {
  const hint = 'Load it first: await loadAttachment(…) of statewright/memory.'
  if (!Array.isArray(attachments)) throw invalidInputError('attachments must be a list.', 'attachments')
  for (const [i, one] of attachments.entries()) {
    const { name, text } = (one ?? {}) as { name?: unknown; text?: unknown }
    if (typeof name !== 'string' || typeof text !== 'string')
      throw invalidInputError(`attachments[${i}] has no name and text. ${hint}`, `attachments[${i}]`)
  }
  return attachments as RunAttachment[]
}

function invalidInputError(message: string, subject: string): UsageError {
  return new UsageError('invalid_input', message, subject)
}
