import { readJson } from '../tools/parse-arguments.js'
import { shorten } from './format-words.js'

/**
 * Calls for people, who decide about them by what they read: nothing in a call may pass for words of ours, and nothing
 * of it goes unseen. What a terminal would not show, or show as something else, is written as its escape.
 */

/** What providers allow a tool's name. */
const maxNameLength = 64

/** A tool's name; one that is no plain word stands in quotes. */
export function formatToolName(name: string): string {
  return /^[\w.-]+$/.test(name) ? shorten(name, maxNameLength) : quoteText(name, maxNameLength)
}

/** The same of a sub-agent's call, behind the names of the tools that lead to it. */
export function formatCallPath({ path = [], name }: { path?: readonly string[]; name: string }): string {
  return [...path, name].map(formatToolName).join(' › ')
}

/** The id of a call. */
export function formatCallId(callId: string): string {
  return /^[\w.:/@=+-]+$/.test(callId) ? shorten(callId, maxNameLength) : quoteText(callId, maxNameLength)
}

/**
 * `path: "a.txt", lines: 3` for `{"path":"a.txt","lines":3}`: what the tool is given. Names that are no plain words stand
 * in quotes. Anything but an object as it stands.
 */
export function formatArguments(json: string, width: number): string {
  const value = parseArguments(json)
  const fields =
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).map(([key, field]) => `${formatKey(key)}: ${JSON.stringify(field)}`)
      : [json]
  // Nothing behind that can be seen, however it is written.
  const text = fields.join(', ').slice(0, width * 4 + 1)
  return shorten(escapeInvisible(text), width)
}

/** The arguments as JSON to be changed, all of them. */
export function formatArgumentsJson(json: string): string {
  const value = parseArguments(json)
  return escapeInvisible(value === undefined ? json : JSON.stringify(value))
}

/** What cannot be seen, or could change how the rest is seen, as escapes; in JSON they mean the same. */
export function escapeInvisible(text: string): string {
  return text
    .replaceAll(invisible, (found) =>
      Array.from({ length: found.length }, (_, i) => escapeUnit(found.charCodeAt(i))).join(''),
    )
    .replaceAll(/ {3,}/g, (spaces) => `⟨${spaces.length} spaces⟩`)
}

// Control and formatting characters, those that are to be ignored, halves of pairs, private ones, an empty pattern of
// dots, and every space but the plain one.
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

/** As tools read them; undefined when they are no JSON. */
function parseArguments(json: string): unknown {
  try {
    return readJson(json)
  } catch {
    return undefined
  }
}
