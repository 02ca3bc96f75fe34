import { sha256 as portable } from '@noble/hashes/sha2.js'

type Hash = (algorithm: 'sha256', text: string, encoding: 'hex') => string

/**
 * Node's own hash, where there is one: eight times faster, and it gives the same digits. Asked of the running process,
 * so that nothing of Node is imported where there is none.
 */
const native: Hash | undefined = (
  globalThis as { process?: { getBuiltinModule?: (name: string) => { hash?: Hash } | undefined } }
).process?.getBuiltinModule?.('node:crypto')?.hash

/** SHA-256 of a text (as UTF-8), as 64 hexadecimal digits. */
export const sha256: (text: string) => string = native
  ? (text) => native('sha256', text, 'hex')
  : portableSha256

/** The same wherever there is no Node: browsers, workers, edge runtimes. */
export function portableSha256(text: string): string {
  return hex(portable(encoder.encode(text)))
}

const encoder = new TextEncoder()
const hexDigits = encoder.encode('0123456789abcdef')

function hex(bytes: Uint8Array): string {
  // From character codes: a string that is pieced together costs more than the hash, once it is compared.
  const codes: number[] = []
  for (const byte of bytes) codes.push(hexDigits[byte >> 4] ?? 0, hexDigits[byte & 15] ?? 0)
  return String.fromCharCode(...codes)
}
