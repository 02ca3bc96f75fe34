import type { Message } from './messages.js'

/** The text of what the user said last: what memory is searched for. */
export function lastWords(messages: readonly Message[]): string {
  const last = messages.findLast((message) => message.role === 'user' && !message.internal)
  if (last?.role !== 'user') return ''
  const { content } = last
  if (typeof content === 'string') return content
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}
