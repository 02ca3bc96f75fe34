import { canonicalForms, tidy } from './canonical-json.js'
import { truncateLine } from './words.js'
import { sha256 } from './sha256.js'
import { isRecord } from './stored.js'

export { sha256 as digest } from './sha256.js'

/** Key order and whitespace do not matter. Text that is not JSON never equals the JSON string of its characters. */
export function fingerprintCall(name: string, argumentsText: string): string {
  return identifyCall(name, argumentsText).fingerprint
}

/** `key` is a short digest, also equal for calls that differ only in blanks around strings or at line ends. */
export function identifyCall(name: string, argumentsText: string): { fingerprint: string; key: string } {
  const forms = canonicalForms(argumentsText)
  // Encoding the name as JSON makes its end unambiguous.
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

/** Combines several fingerprints into one. Order does not matter, but duplicates count. */
export function fingerprintBatch(fingerprints: readonly string[]): string {
  const [first] = fingerprints
  if (first !== undefined && fingerprints.length === 1) return first
  return sha256([...fingerprints].sort().join(' '))
}

export function formatArguments(text: string): string {
  return truncateLine(text, 200)
}
