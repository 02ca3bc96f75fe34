import { valueOr } from './maybe-promise.js'
import type { Message } from '../../../machines/agent/messages.js'
import { truncate } from '../../../guards/lib/words.js'
import { asList, asObject, describeArgument } from './values.js'
import { toJson } from './json.js'

/**
 * Makes untrusted text safe for a terminal. Removes escape sequences and other control characters, which could move the
 * cursor, rename the window or spoof output. Tabs and newlines are kept.
 */
export function stripControls(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(controlCharacters, '')
}

// Includes bidirectional overrides, because they reorder text.
const controlCharacters = /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu

export function decodePercent(text: string): string {
  return valueOr(() => decodeURIComponent(text), text)
}

/** Decodes base64 with the first charset that fits. Returns null for binary data and invalid base64. */
export function decodeBase64(base64: string, charsets: readonly string[] = ['utf-8']): string | null {
  const bytes = valueOr(() => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)), null)
  if (bytes === null) return null
  for (const charset of charsets) {
    const text = valueOr(() => new TextDecoder(charset, { fatal: true }).decode(bytes), null)
    // oxlint-disable-next-line no-control-regex -- data with control characters is binary, not text
    if (text !== null) return /[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? null : text
  }
  return null
}

/**
 * Converts a tool's return value to text for the model. Strings are unchanged, a missing value becomes 'Done.', and
 * other values become JSON. The text has at most `maxChars` characters, and `truncated` is set if it was shortened.
 * Never throws.
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
  // For a value without a JSON form, the description is already a string.
  if (typeof json === 'string') return json
  return valueOr(() => JSON.stringify(json), "The tool's result exceeds the maximum length of a string.")
}

/**
 * Truncates a text to `limit` characters (UTF-16 code units). Keeps the head (two thirds) and the tail, with a note
 * between them that states the omitted length. Never splits a surrogate pair.
 */
export function cutMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text
  // Reserves space for the longest possible note.
  const room = limit - formatOmission(text.length, text.length).length
  if (room <= 0) return text.slice(0, splitsPair(text, limit) ? limit - 1 : limit)
  const wanted = Math.ceil((room * 2) / 3)
  const head = splitsPair(text, wanted) ? wanted - 1 : wanted
  const from = text.length - (room - wanted)
  const tail = splitsPair(text, from) ? from + 1 : from
  return text.slice(0, head) + formatOmission(tail - head, text.length) + text.slice(tail)
}

function formatOmission(dropped: number, total: number): string {
  return `\n[… ${dropped} of ${total} characters omitted …]\n`
}

/** Whether an index is between the halves of a surrogate pair. */
export function splitsPair(text: string, at: number): boolean {
  return isBetween(text.charCodeAt(at - 1), 0xd800, 0xdbff) && isBetween(text.charCodeAt(at), 0xdc00, 0xdfff)
}

export function isBetween(value: number, low: number, high: number): boolean {
  return value >= low && value <= high
}

/** A value in an error: a shortened text in quotes, a number, or the type of any other value. */
export function describeFound(value: unknown): string {
  if (typeof value === 'string') return `'${shortenText(value)}'`
  return typeof value === 'number' ? String(value) : describeArgument(value)
}

/** Such as `prices["gpt-5"].inputPerMillion` or `messages[0].role`. */
export function formatKeyPath(keys: readonly PropertyKey[]): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`
    const name = String(key)
    if (!/^[A-Za-z_$][\w$]{0,59}$/.test(name)) return `${path}[${JSON.stringify(shortenText(name))}]`
    return path === '' ? name : `${path}.${name}`
  }, '')
}

function shortenText(text: string): string {
  return truncate(text.slice(0, 100).replaceAll(/\s+/g, ' '), 61)
}

export function findNearestName(name: string, candidates: readonly string[]): string | undefined {
  const wanted = normalizeName(name)
  // Longer names are not typos, and the comparison takes time proportional to the product of both lengths.
  if (wanted === '' || wanted.length > 64) return undefined
  const tolerance = Math.max(1, Math.floor(wanted.length / 3))
  let best: string | undefined
  let shortest = tolerance + 1
  for (const candidate of candidates) {
    // `tool` should match `tools` rather than `toolCalls`.
    const distance = Math.min(
      editDistance(wanted, normalizeName(candidate)),
      isPrefix(wanted, normalizeName(candidate)) ? 1.5 : Infinity,
    )
    if (distance < shortest) [best, shortest] = [candidate, distance]
  }
  return best
}

/** Normalizes `max_steps`, `max-steps` and `MaxSteps` to the same spelling. */
export function normalizeName(name: string): string {
  return name.replaceAll(/[_\-\s]/g, '').toLowerCase()
}

/** Whether `wanted` is a prefix of a longer name, as `timeout` is of `timeoutMs`. */
function isPrefix(wanted: string, candidate: string): boolean {
  return wanted.length >= 4 && wanted !== candidate && candidate.startsWith(wanted)
}

/** Sorts `names` by similarity to `wanted`, most similar first. Stable and case-insensitive. */
export function sortByNearness(wanted: string, names: readonly string[]): string[] {
  // Tool names have at most 64 characters.
  const goal = wanted.slice(0, 64).toLowerCase()
  return names
    .map((name) => ({ name, edits: editDistance(goal, name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name)
}

/** The edit distance between two words. Swapping two neighbors counts as one edit. */
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row.at(-1) ?? 0
}

/** The text of a message, with other parts shown by type. */
export function formatMessageText({ content }: Pick<Message, 'content'>, separator = ' '): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(separator)
}

export function joinTextParts(content: unknown): string {
  if (typeof content === 'string') return content
  const parts = asList(content).map((part) => asObject(part) ?? {})
  return parts
    .flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
    .join('\n')
}
