import { digit, kindOf, temporaryPathEnd, volatileEnd } from './volatile.js'

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
const bytes = new Uint8Array(longest * 3 + beyond)

function digestOf(text: string): string {
  const end = encoder.encodeInto(text, bytes).written
  bytes.fill(0, end, end + beyond)
  let low = 0x811c9dc5
  let high = 0x41c6ce57
  let at = 0
  while (at < end) {
    const byte = bytes[at] ?? 0
    let kind = kindOf[byte] ?? 0
    if (kind === 0) {
      const after = byte === slash ? temporaryPathEnd(bytes, at, end) : at
      low = Math.imul(low ^ (after > at ? volatile : byte), prime)
      at = after > at ? after : at + 1
      continue
    }
    const from = at
    let all = 0
    while (kind !== 0) {
      all |= kind
      at += 1
      kind = at < end ? (kindOf[bytes[at] ?? 0] ?? 0) : 0
    }
    const after = mayBeVolatile(from, at, all) ? volatileEnd(bytes, from, at, end, all) : from
    if (after > from) {
      low = Math.imul(low ^ volatile, prime)
      at = after
    } else {
      for (let i = from; i < at; i += 1) low = Math.imul(low ^ (bytes[i] ?? 0), prime)
    }
    high = Math.imul(high ^ low, 0x85ebca6b)
    high ^= high >>> 13
  }
  return (base36(low ^ (low >>> 15)) + base36(high)).slice(0, 9)
}

const slash = 0x2f
const prime = 16_777_619
/** Stands for what is left out; no byte equals it. */
const volatile = 0x1_0001

/** Most words are none: neither a digit, nor `…id`, nor the name of a day or a month. */
function mayBeVolatile(from: number, to: number, kind: number): boolean {
  if ((kind & digit) !== 0 || ((bytes[to - 1] ?? 0) | 32) === 0x64) return true
  return (bytes[from] ?? 0) <= 0x5a || (kind < 4 && to - from === 8)
}

function base36(number: number): string {
  return (number >>> 0).toString(36)
}
