import { valueOr } from '../base/maybe-promise.js'
import { readJson } from '../tools/parse-arguments.js'
import { shorten } from './format-words.js'

/**
 * Formats calls for the people who decide on them. A call must not be able to imitate text from the program or hide
 * anything, so invisible characters are shown as escapes.
 */

const maxNameLength = 64

export function formatToolName(name: string): string {
  return /^[\w.-]+$/.test(name) ? shorten(name, maxNameLength) : quoteText(name, maxNameLength)
}

export function formatCallPath({ path = [], name }: { path?: readonly string[]; name: string }): string {
  return [...path, name].map(formatToolName).join(' › ')
}

export function formatCallId(callId: string): string {
  return /^[\w.:/@=+-]+$/.test(callId) ? shorten(callId, maxNameLength) : quoteText(callId, maxNameLength)
}

/** Formats `{"path":"a.txt","lines":3}` as `path: "a.txt", lines: 3`. Other values stay unchanged. */
export function formatArguments(json: string, width: number): string {
  const value = parseArguments(json)
  const fields =
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).map(([key, field]) => `${formatKey(key)}: ${JSON.stringify(field)}`)
      : [json]
  // Text beyond this length would be truncated later.
  const text = fields.join(', ').slice(0, width * 4 + 1)
  return shorten(escapeInvisible(text), width)
}

export function formatArgumentsJson(json: string): string {
  const value = parseArguments(json)
  return escapeInvisible(value === undefined ? json : JSON.stringify(value))
}

/** Escapes characters that are invisible or change how text is displayed. Escaped JSON keeps its meaning. */
export function escapeInvisible(text: string): string {
  return text
    .replaceAll(invisible, (found) =>
      Array.from({ length: found.length }, (_, i) => escapeUnit(found.charCodeAt(i))).join(''),
    )
    .replaceAll(/ {3,}/g, (spaces) => `⟨${spaces.length} spaces⟩`)
}

// Control, format, ignorable and private characters, lone surrogates, empty Braille, spaces except U+0020.
const invisible = /[\p{Cc}\p{Cf}\p{DI}\p{Cs}\p{Co}\u2800]|[^\S ]/gu

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}

function formatKey(key: string): string {
  return /^[A-Za-z_$][\w$-]*$/.test(key) ? key : JSON.stringify(key)
}

function quoteText(text: string, width: number): string {
  return shorten(escapeInvisible(JSON.stringify(text)), width)
}

function parseArguments(json: string): unknown {
  return valueOr(() => readJson(json), undefined)
}
