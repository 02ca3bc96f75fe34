import { toJson } from './to-json.js'

/**
 * What a tool returned, as the text that the model reads: a string as it is, nothing as 'Done.', anything else as JSON.
 * At most `maxChars` characters; `truncated` says that it was cut. Never throws.
 */
export function formatValue(value: unknown, maxChars: number): { content: string; truncated?: true } {
  return limitText(toText(value), maxChars)
}

export function limitText(text: string, maxChars: number): { content: string; truncated?: true } {
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

/**
 * A text of at most `limit` characters (UTF-16 code units). A longer one keeps its head (two thirds) and tail, where
 * what matters usually is, around a note of how much was left out. Never splits a surrogate pair.
 */
export function cutMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text
  // The note's length for the largest number that it can hold; the rest is room for text.
  const room = limit - formatOmission(text.length, text.length).length
  if (room <= 0) return text.slice(0, splitsPair(text, limit) ? limit - 1 : limit)
  const wanted = Math.ceil((room * 2) / 3)
  const head = splitsPair(text, wanted) ? wanted - 1 : wanted
  const from = text.length - (room - wanted)
  const tail = splitsPair(text, from) ? from + 1 : from
  return text.slice(0, head) + formatOmission(tail - head, text.length) + text.slice(tail)
}

function formatOmission(dropped: number, total: number): string {
  return `\n[… ${dropped} of ${total} characters left out …]\n`
}

function splitsPair(text: string, at: number): boolean {
  return isBetween(text.charCodeAt(at - 1), 0xd800, 0xdbff) && isBetween(text.charCodeAt(at), 0xdc00, 0xdfff)
}

function isBetween(code: number, low: number, high: number): boolean {
  return code >= low && code <= high
}
