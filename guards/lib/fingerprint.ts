import { canonicalForms, tidy } from './canonical-json.js'
import { truncateLine } from './cut.js'
import { sha256 } from './sha256.js'
import { isRecord } from './stored.js'

export { sha256 as digest } from './sha256.js'

/**
 * Identifies a call, independent of key order and whitespace. Equal exactly for calls of the same tool with the same
 * arguments. Arguments that are not JSON are compared as raw text, which never equals the JSON string of the same
 * characters.
 */
export function fingerprintCall(name: string, argumentsText: string): string {
  return identifyCall(name, argumentsText).fingerprint
}

/** The digests that identify a call, most exact first. */
export interface CallDigests {
  fingerprint: string
  /** Short. Also equal for calls that differ only in blanks around strings or at line ends. */
  key: string
}

export function identifyCall(name: string, argumentsText: string): CallDigests {
  const forms = canonicalForms(argumentsText)
  // The name is encoded as JSON, so that its end is unambiguous.
  const start = JSON.stringify(name)
  const [kind, exact, tidied] = forms
    ? ['json', forms.exact, forms.tidied]
    : ['text', JSON.stringify(argumentsText), JSON.stringify(tidy(argumentsText))]
  const print = sha256(`${start} ${kind} ${exact}`)
  return {
    fingerprint: print,
    key: (exact === tidied ? print : sha256(`${start} ${kind} ${tidied}`)).slice(0, keyLength),
  }
}

/** Arguments with each value cut to this length. */
export function cutValues(argumentsText: string, most: number): string {
  try {
    const values: unknown = JSON.parse(argumentsText)
    if (!isRecord(values)) return argumentsText
    const cut = Object.entries(values).map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      return [name, text.length > most ? text.slice(0, most) : value] as const
    })
    return JSON.stringify(Object.fromEntries(cut))
  } catch {
    return argumentsText
  }
}

/** 40 bits are enough for the few calls of a turn. */
export const keyLength = 10

/** One fingerprint for several, independent of order. Counts duplicates. */
export function fingerprintBatch(fingerprints: readonly string[]): string {
  const [first] = fingerprints
  if (first !== undefined && fingerprints.length === 1) return first
  return sha256([...fingerprints].sort().join(' '))
}

/** Arguments for people, on one line of at most 200 characters. */
export function formatArguments(text: string): string {
  return truncateLine(text, 200)
}
