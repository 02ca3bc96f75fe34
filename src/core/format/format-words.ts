import { formatMessageText, stripControls } from '../base/text.js'
import { getCacheHitRate } from '../../../machines/agent/usage.js'

export { formatMessageText, stripControls }

/** Shortens a text to one line of at most `width` characters. */
export function shorten(text: string, width: number): string {
  // Avoids scanning large results.
  const line = stripControls(text.slice(0, width * 4))
    .replaceAll(/\s+/g, ' ')
    .trim()
  const letters = Array.from(line)
  return letters.length <= width && text.length <= width * 4
    ? line
    : `${letters.slice(0, width - 1).join('')}…`
}

/** Characters that take up two columns on a terminal. */
const wide =
  /[\p{Emoji_Presentation}\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]/u

// oxlint-disable-next-line no-control-regex -- escape sequences of `createPaint`
const escapes = /\u001b\[\d+m/g

/** The width of a text on a terminal. Combining marks and escape sequences have no width. */
export function getColumns(text: string): number {
  let columns = 0
  for (const char of text.replaceAll(escapes, ''))
    columns += /[\p{Mn}\p{Me}\p{Cf}]/u.test(char) ? 0 : wide.test(char) ? 2 : 1
  return columns
}

/** Breaks lines between words. Wrapped lines are indented by `indent`. */
export function wrapWords(text: string, width: number, indent = ''): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, width, indent))
    .join('\n')
}

function wrapLine(line: string, width: number, indent: string): string {
  let out = ''
  let column = 0
  for (const part of line.match(/\s*\S+/g) ?? []) {
    const word = part.trimStart()
    const breaks = column > 0 && column + getColumns(part) > width
    out += breaks ? `\n${indent}${word}` : part
    column = breaks ? indent.length + getColumns(word) : column + getColumns(part)
  }
  return out
}

export function getFirstLine(text: string): string {
  const start = text.trimStart()
  const end = start.indexOf('\n')
  return end < 0 ? start : `${start.slice(0, end)} …`
}

/** Formats a duration as `340 ms`, `2.1 s`, `47 s`, `1 min 47 s`, `12 min`, `3 h 5 min` or `2 d`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 59_500) return `${(ms / 1000).toFixed(ms < 9_950 ? 1 : 0)} s`
  const [seconds, minutes] = [Math.round(ms / 1000), Math.floor(ms / 60_000)]
  if (seconds < 600) return joinUnits(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  if (minutes < 60) return `${minutes} min`
  if (minutes < 1440) return joinUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'min')
  return `${Math.floor(minutes / 1440)} d`
}

function joinUnits(large: number, unit: string, small: number, smaller: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`
}

/** Formats a time as `just now`, `12 s ago`, `3 h ago` or `2 d ago`. After a week, formats it as a date (UTC). */
export function formatAgo(at: number, now: number): string {
  const ms = now - at
  if (ms < 5000) return 'just now'
  if (ms >= 7 * 86_400_000) return new Date(at).toISOString().slice(0, 10)
  return `${formatDuration(ms).replace(/^(\S+ \S+) .*/, '$1')} ago`
}

/** Formats a number as `1,234`, or with a noun as `1 session` or `1,234 sessions`. */
export function formatCount(value: number, noun?: string, nouns = `${noun}s`): string {
  const count = value.toLocaleString('en-US')
  return noun === undefined ? count : `${count} ${value === 1 ? noun : nouns}`
}

/** Such as `$1.25`. Amounts below one dollar have four decimals. */
export function formatMoney(usd: number | null, unknown = 'unknown'): string {
  if (usd === null) return unknown
  if (usd > 0 && usd < 0.0001) return '< $0.0001'
  return `$${usd.toFixed(usd !== 0 && usd < 1 ? 4 : 2)}`
}

/** The cached share of the input in percent, rounded down so that only fully cached input shows 100. */
export function getCachedPercent(usage: Parameters<typeof getCacheHitRate>[0]): number {
  return Math.floor(getCacheHitRate(usage) * 100)
}

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const

export type Style = keyof typeof codes

export type Paint = (style: Style, text: string) => string

export function createPaint(color: boolean): Paint {
  return (style, text) => {
    if (!color || text === '') return text
    const [on, off] = codes[style]
    return `\u001b[${on}m${text}\u001b[${off}m`
  }
}
