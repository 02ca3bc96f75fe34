import { digit, hexLetter, kindByByte, findTemporaryPathEnd, findVolatileEnd } from './volatile.js'

/** The digests of a result, for comparisons. Short, because many are remembered. */
export interface OutcomeDigests {
  /**
   * Without what changes by itself (see volatile.ts): equal for outputs that differ in clocks, durations and ids alone.
   */
  digest: string
  /**
   * Of its words: equal for outputs that have the same words, in any order and each as often as it likes. Words that hold
   * letters and digits are left out: they are references.
   */
  words: string
  /** Of its numbers, in the same way. */
  numbers: string
}

/**
 * Digests of what a call brought back. Of a text beyond 16,000 characters both ends count. One pass, linear for any text.
 * No cryptographic hashes: a forged equal digest only makes a guard act too early.
 */
export function digestOutcome(text: string): OutcomeDigests {
  if (text.length <= longest) return digestText(text)
  const head = text.slice(0, longest / 2)
  const tail = text.slice(-longest / 2)
  // Whole lines, so that a wider clock in one of them does not move the others out.
  const end = head.lastIndexOf('\n')
  const first = digestText(end > 0 ? head.slice(0, end) : head)
  const last = digestText(tail.slice(tail.indexOf('\n') + 1))
  return {
    digest: digestText(first.digest + last.digest).digest,
    words: first.words + last.words,
    numbers: first.numbers + last.numbers,
  }
}

/** The digest alone. */
export function outcomeDigest(text: string): string {
  return digestOutcome(text).digest
}

/** Characters of which all count. */
const longest = 16_000

const encoder = new TextEncoder()
/** Zeros after a text, so that a lookahead does not read bytes of an earlier text. */
const beyond = 256
/** Where texts are read; a character takes three bytes at most. */
const room = new Uint8Array(longest * 3 + beyond)

/**
 * The words of the text that is read, by the slots that their hashes have: a slot is taken where it has the text's
 * turn.
 */
const slots = new Uint16Array(1 << 14)
let turn = 0

function nextTurn(): number {
  turn = (turn + 1) & 0xffff
  // Once in 65,535 texts, so that no text finds what one of the same turn has left.
  if (turn === 0) {
    slots.fill(0)
    turn = 1
  }
  return turn
}

function digestText(text: string): OutcomeDigests {
  // Constants of the function, not of the module: read a thousand times a text, wherever a bundler puts the others.
  const bytes = room
  const kinds = kindByByte
  const prime = 16_777_619
  // Stands for what is left out; no byte equals it.
  const volatile = 0x1_0001
  const end = encoder.encodeInto(text, bytes).written
  bytes.fill(0, end, end + beyond)
  let low = -0x7ee3623b
  let high = 0x41c6ce57
  const current = nextTurn()
  let words = 0
  let numbers = 0
  let others = 0
  let at = 0
  while (at < end) {
    let byte = bytes[at] ?? 0
    let kind = kinds[byte] ?? 0
    if (kind === 0) {
      const after = byte === 0x2f ? findTemporaryPathEnd(bytes, at, end) : at
      if (after === at) {
        low = Math.imul(low ^ byte, prime)
        // Scripts other than Latin have no words here: their characters count in their order.
        if (byte > 0x7f) others = Math.imul(others ^ byte, prime)
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
      const after = findVolatileEnd(bytes, from, at, end, all)
      if (after > from) {
        low = Math.imul(before ^ volatile, prime)
        at = after
        // Neither a word nor a number.
        all = 0
      }
    }
    const isNumber = all === digit
    if (isNumber || ((all & digit) === 0 && all !== 0 && !isPartOfReference(bytes, from, at))) {
      const slot = isNumber ? numberSlot(bytes, from, at) : wordSlot(bytes, from, at)
      if (slots[slot] !== current) {
        slots[slot] = current
        const part = Math.imul(slot + 1, 0x9e3779b1)
        if (isNumber) numbers = (numbers + part) | 0
        else words = (words + part) | 0
      }
    }
    high = Math.imul(high ^ low, 0x85ebca6b)
    high ^= high >>> 13
  }
  return {
    digest: (toBase36(low ^ (low >>> 15)) + toBase36(high)).slice(0, 9),
    words: toBase36(Math.imul(words ^ (words >>> 15), 0x85ebca6b) ^ others).slice(-5),
    numbers: toBase36(Math.imul(numbers ^ (numbers >>> 15), 0x85ebca6b)).slice(-5),
  }
}

/** A word by its length and five of its letters, which costs the same for every word. */
function wordSlot(bytes: Uint8Array, from: number, to: number): number {
  const middle = (from + to) >> 1
  let hash = Math.imul(to - from, 0x9e3779b1)
  hash = Math.imul(hash ^ (bytes[from] ?? 0), 0x85ebca6b)
  hash = Math.imul(hash ^ (bytes[from + 1] ?? 0), 0xc2b2ae35)
  hash = Math.imul(hash ^ (bytes[middle] ?? 0), 0x85ebca6b)
  hash = Math.imul(hash ^ (bytes[to - 2] ?? 0), 0xc2b2ae35)
  hash = Math.imul(hash ^ (bytes[to - 1] ?? 0), 0x85ebca6b)
  return (hash ^ (hash >>> 15)) & (slots.length - 1)
}

function numberSlot(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x2f
  for (let at = from; at < to; at += 1) hash = Math.imul(hash, 10) + (bytes[at] ?? 0)
  hash = Math.imul(hash, 0x85ebca6b)
  return (hash ^ (hash >>> 15)) & (slots.length - 1)
}

/** Capitals beside a dash, as in `QX-4821`: new each time as the digits are. */
function isPartOfReference(bytes: Uint8Array, from: number, to: number): boolean {
  if (bytes[from - 1] !== dash && bytes[to] !== dash) return false
  return (bytes[from] ?? 0) <= capitalZ && (bytes[to - 1] ?? 0) <= capitalZ
}

const dash = 0x2d
const capitalZ = 0x5a

function toBase36(number: number): string {
  return (number >>> 0).toString(36)
}
