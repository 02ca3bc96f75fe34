import type { CallFact } from '../types.js'

/** Cuts a text to `length` UTF-16 units, ending in `…`. Never splits a code point. */
export function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${takeHead(text, length)}…`
}

function takeHead(text: string, length: number): string {
  const head = text.slice(0, length - 1)
  return endsInHalf(head) ? head.slice(0, -1) : head
}

/** Whether a text ends in the first half of a surrogate pair. */
export function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}

/** Like `truncate`, but on one line. Control characters and lone surrogates become spaces. */
export function truncateLine(text: string, length: number): string {
  return text.length <= length ? toLine(text) : `${toLine(takeHead(text, length))}…`
}

function toLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}]/gu, ' ')
}

const redacted = '[redacted]'

/** A trailing `…` marks a secret that was truncated. Every pattern runs in linear time. */
const secrets: [pattern: RegExp, replacement: string][] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, redacted],
  // Passwords in URLs: scheme://user:password@host
  [/(:\/\/[^\s/?#:@]{0,256}:)[^\s/?#@]{1,512}(?:@|…)/g, `$1${redacted}@`],
  [
    new RegExp(
      // Matches at the start of a word, or after an escape such as \n in JSON text.
      String.raw`(?:(?<![\w-])|(?<=\\[bfnrt])|(?<=\\u[\da-fA-F]{4}))` +
        '(?:sk-|sk_|pk_|rk_|xai-|gsk_|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-|AIza|AKIA|ASIA)' +
        String.raw`(?:[\w-]{12,}|[\w-]*…)`,
      'g',
    ),
    redacted,
  ],
  [/(?<![\w-])eyJ[\w-]{5,}(?:…|\.(?:[\w-]*…|[\w-]{5,}\.[\w-]*))/g, redacted],
  [/\b(bearer\s{1,4})(?:[\w.~+/=-]{6,}|[\w.~+/=-]*…)/gi, `$1${redacted}`],
  // password=…, "api_key": "…", and the same inside a JSON string.
  [
    new RegExp(
      '((?:api_?-?key|access_?-?key|secret_?-?key|private_?-?key|secret|token|password|passwd|passphrase|pwd|authorization)' +
        String.raw`\\?["']?\s{0,4}[:=]\s{0,4})(?!bearer\s)` +
        String.raw`(?:\\"[^"]*|"(?:[^"\\]|\\[^])*"?|'[^']*'?|[^\s"',;&}\]]+)`,
      'gi',
    ),
    `$1${redacted}`,
  ],
]

/** Longer texts are cut first to limit the running time. */
const longest = 8000

/** Removes API keys, bearer tokens, private keys and passwords in recognizable formats. */
export function scrubEvidence(text: string): string {
  return secrets.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text)
}

/** Makes evidence safe to show and log: secrets removed, at most 600 characters. */
export function toEvidence(text: string): string {
  return truncate(scrubEvidence(truncate(text, longest)), 600)
}

const shownCalls = 3

/** The calls in a verdict, formatted for people and the model. Kept short because it is part of a guard's state. */
export function nameCalls(calls: readonly CallFact[]): { tools: string; calls: string; number: number } {
  const shown = calls.slice(0, shownCalls).map((call) => `${formatName(call.name)}(${call.shown})`)
  const text = truncateLine(toEvidence(shown.join('; ')), 240)
  return { tools: formatTools(calls), calls: text, number: calls.length }
}

export function formatTools(calls: readonly CallFact[]): string {
  const names = [...new Set(calls.map((call) => call.name))]
  const first = names.slice(0, shownCalls).map(formatName).join(', ')
  const more = names.length - shownCalls
  return truncateLine(more > 0 ? `${first} and ${more} more` : first, 96)
}

function formatName(name: string): string {
  return name === '' ? "''" : truncateLine(name, 64)
}

export function formatTimes(count: number): string {
  if (count === 1) return 'once'
  return count === 2 ? 'twice' : `${count} times`
}

export function formatRounds(count: number): string {
  return count === 1 ? '1 round' : `${count} rounds`
}

export const lastWordsAsked =
  'The run stops here. Summarize what you have done and found so far, and what is missing.'
