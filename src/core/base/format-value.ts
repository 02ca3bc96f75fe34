import { cutMiddle } from './cut-middle.js'
import { toJson } from './to-json.js'

/**
 * What a tool returned, as the text that the model reads: a string as it is, nothing as 'Done.', anything else as JSON.
 * At most `maxChars` characters; `truncated` says that it was cut. Never throws.
 */
export function formatValue(value: unknown, maxChars: number): { content: string; truncated?: true } {
  return limit(toText(value), maxChars)
}

export function limit(text: string, maxChars: number): { content: string; truncated?: true } {
  return text.length <= maxChars ? { content: text } : { content: cutMiddle(text, maxChars), truncated: true }
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return 'Done. The tool returned nothing.'
  const json = typeof value === 'string' ? value : toJson(value)
  // Descriptions of what is not JSON are sentences already.
  if (typeof json === 'string') return json
  try {
    return JSON.stringify(json)
  } catch {
    return 'The tool returned more than a text can hold.'
  }
}
