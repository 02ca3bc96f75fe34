import type { Message } from '../../../machines/agent/messages.js'

/** What a message says, as one text; parts that are no text by their kind. */
export function formatMessageText({ content }: Pick<Message, 'content'>): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ')
}
