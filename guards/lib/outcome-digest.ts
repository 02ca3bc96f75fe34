import { digit, hexLetter, kindOf, temporaryPathEnd, volatileEnd } from './volatile.js'

/**
 * A digest of what a call brought back, without what changes by itself (see volatile.ts): equal for two outputs that
 * differ in clocks, durations, ids and addresses alone. Of a text beyond 16,000 characters both ends count. One pass,
 * linear whatever the text. Short, because many are remembered, and no cryptographic hash: whoever forges an equal
 * digest gains that a guard speaks up too early.
 */
export function outcomeDigest(text: string): string {
  if (text.length <= longest) return digestOf(text)
  const head = text.slice(0, longest / 2)
  const tail = text.slice(-longest / 2)
  // Whole lines, so that a wider clock in one of them does not move the others out.
  const end = head.lastIndexOf('\n')
  return digestOf(
    digestOf(end > 0 ? head.slice(0, end) : head) + digestOf(tail.slice(tail.indexOf('\n') + 1)),
  )
}

/** Characters of which all count. */
const longest = 16_000

const encoder = new TextEncoder()
/** Zeros after a text, so that nobody who looks ahead reads what an earlier one left there. */
const beyond = 256
/** Where texts are read; a character takes three bytes at most. */
const room = new Uint8Array(longest * 3 + beyond)

function digestOf(text: string): string {
  // Constants of the function, not of the module: read a thousand times a text, wherever a bundler puts the others.
  const bytes = room
  const kinds = kindOf
  const prime = 16_777_619
  // Stands for what is left out; no byte equals it.
  const volatile = 0x1_0001
  const end = encoder.encodeInto(text, bytes).written
  bytes.fill(0, end, end + beyond)
  let low = -0x7ee3623b
  let high = 0x41c6ce57
  let at = 0
  while (at < end) {
    let byte = bytes[at] ?? 0
    let kind = kinds[byte] ?? 0
    if (kind === 0) {
      const after = byte === 0x2f ? temporaryPathEnd(bytes, at, end) : at
      if (after === at) {
        low = Math.imul(low ^ byte, prime)
        at += 1
      } else {
        low = Math.imul(low ^ volatile, prime)
        at = after
      }
      continue
    }
    const from = at
    const before = low
    let all = 0
    // A word is hashed while its end is looked for. Zeros stand beyond the text, and end the last one.
    do {
      all |= kind
      low = Math.imul(low ^ byte, prime)
      at += 1
      byte = bytes[at] ?? 0
      kind = kinds[byte] ?? 0
    } while (kind !== 0)
    // Most words are none: neither a digit, nor a capital, nor `…id`, nor the start of a UUID.
    if (
      (all & digit) !== 0 ||
      (bytes[from] ?? 0) <= 0x5a ||
      ((bytes[at - 1] ?? 0) | 32) === 0x64 ||
      (all === hexLetter && at - from === 8)
    ) {
      const after = volatileEnd(bytes, from, at, end, all)
      if (after > from) {
        low = Math.imul(before ^ volatile, prime)
        at = after
      }
    }
    high = Math.imul(high ^ low, 0x85ebca6b)
    high ^= high >>> 13
  }
  return (base36(low ^ (low >>> 15)) + base36(high)).slice(0, 9)
}

function base36(number: number): string {
  return (number >>> 0).toString(36)
}
