import { sha256 } from '@noble/hashes/sha2.js'
import { canonicalJson } from './canonical-json.js'
import { cutLine } from './cut.js'

const encoder = new TextEncoder()

const hexDigits = encoder.encode('0123456789abcdef')

/** SHA-256 of a text, as 64 hexadecimal digits. */
export function digest(text: string): string {
  return hex(sha256(encoder.encode(text)))
}

function hex(bytes: Uint8Array): string {
  // From character codes: a string that is pieced together costs more than the hash, once it is compared.
  const codes: number[] = []
  for (const byte of bytes) codes.push(hexDigits[byte >> 4] ?? 0, hexDigits[byte & 15] ?? 0)
  return String.fromCharCode(...codes)
}

/**
 * What a call is, whatever the order of keys and the whitespace: equal for calls of the same tool with the same
 * arguments, different for all others. Arguments that are not JSON are taken as raw text, and such a text never equals
 * the JSON string of the same letters.
 */
export function fingerprint(name: string, argumentsText: string): string {
  const canonical = canonicalJson(argumentsText)
  // The name is written as JSON, so that nothing in it can pass for the start of the arguments.
  const start = JSON.stringify(name)
  return digest(
    canonical === null ? `${start} text ${JSON.stringify(argumentsText)}` : `${start} json ${canonical}`,
  )
}

/** One fingerprint for several, in whatever order they come; how often each comes counts. */
export function batchFingerprint(fingerprints: readonly string[]): string {
  const [first] = fingerprints
  if (first !== undefined && fingerprints.length === 1) return first
  return digest([...fingerprints].sort().join(' '))
}

/** Arguments as people get to see them: one line of at most 200 characters. */
export function shown(text: string): string {
  return cutLine(text, 200)
}
