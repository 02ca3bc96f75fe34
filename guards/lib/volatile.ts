/**
 * What changes by itself in the output of a tool: dates and clock times, epochs, durations, UUIDs, addresses and long
 * hexadecimal words, the ids of requests and traces, process ids, names under /tmp. Never another number: progress is
 * a number. Works on UTF-8 bytes, and looks at each of them a bounded number of times.
 */

/** What a byte is to a word. Words are ASCII letters and digits; everything else is 0 and parts them. */
export const kindByByte: Uint8Array = createKinds()

export const digit = 1
export const hexLetter = 2
const letter = 4

/**
 * Where the volatile piece ends that begins with the word from `from` to `to`; `from` when there is none.
 * @param kind the kinds of all bytes of the word, or-ed
 * @param end of the text in `bytes`
 */
export function findVolatileEnd(
  bytes: Uint8Array,
  from: number,
  to: number,
  end: number,
  kind: number,
): number {
  const length = to - from
  if ((kind & letter) === 0) {
    if (length === 8 && bytes[to] === dash) {
      const after = findUuidEnd(bytes, to, end)
      if (after > to) return after
    }
    if (kind === (digit | hexLetter) && length >= 12 && length <= 128) return to
  }
  if ((kind & digit) === 0) return findWordEnd(bytes, from, to, end)
  if (kindByByte[bytes[from] ?? 0] !== digit) return from
  const digits = findRunEnd(bytes, from, to, digit)
  if (digits < to) {
    if (isAddress(bytes, from, to)) return to
    return findDurationEnd(bytes, from, end)
  }
  return findNumberEnd(bytes, from, to, end)
}

/** Where a path under /tmp ends whose slash is at `from`; `from` when none begins there. */
export function findTemporaryPathEnd(bytes: Uint8Array, from: number, end: number): number {
  if (!matchesText(bytes, from, end, '/tmp/')) return from
  let at = from + 5
  while (at < end && (kindByByte[bytes[at] ?? 0] !== 0 || isInSet(inPath, bytes[at]))) at += 1
  return at > from + 5 ? at : from
}

/** A number that is a date, a clock time, a duration or an epoch. */
function findNumberEnd(bytes: Uint8Array, from: number, to: number, end: number): number {
  const next = to < end ? bytes[to] : 0
  if (next === colon) return findClockEnd(bytes, from, end)
  if (next === dash || next === slash) return findDateEnd(bytes, from, to, end)
  const length = to - from
  if (bytes[from] === one && (length === 10 || length === 13 || length === 16 || length === 19)) {
    const fraction = next === dot ? findRunEnd(bytes, to + 1, end, digit) : to
    return fraction > to + 1 ? fraction : to
  }
  // A unit of time is a word of its own, or begins with the µ: after anything else the number ends.
  if (next === space) return Math.max(from, findUnitEnd(bytes, to + 1, end, true))
  if (next === dot || (next ?? 0) > 0x7f) return findDurationEnd(bytes, from, end)
  return isProcess(bytes, from, next) ? to : from
}

/** `1.5s`, `2h30m`, `1m23.4s`, `12 ms`, `3 minutes`. */
function findDurationEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  for (;;) {
    let number = findRunEnd(bytes, at, end, digit)
    if (number === at) return at
    if (bytes[number] === dot) number = findRunEnd(bytes, number + 1, end, digit)
    const isApart = bytes[number] === space && at === from
    const unit = findUnitEnd(bytes, isApart ? number + 1 : number, end, isApart)
    // All of it is a duration, or none.
    if (unit === -1) return from
    at = unit
    if (at >= end || isApart || kindByByte[bytes[at] ?? 0] !== digit) return at
  }
}

const units = 'ns us ms s h sec min hr second minute hour day millisecond microsecond'
  .split(' ')
  .flatMap((unit) => [unit, `${unit}s`])

/** By how they begin. */
const unitsFrom: ReadonlyMap<number | undefined, readonly string[]> = new Map(
  [...new Set(units.map((unit) => unit.charCodeAt(0)))].map((first) => [
    first,
    units.filter((unit) => unit.charCodeAt(0) === first),
  ]),
)

function isUnit(bytes: Uint8Array, from: number, to: number): boolean {
  for (const unit of unitsFrom.get(bytes[from]) ?? []) {
    if (unit.length === to - from && matchesText(bytes, from, to, unit)) return true
  }
  return false
}

/** Where a unit of time ends; -1 when there is none. `5m` and `2d` are durations, `5 m` and `2 d` may be anything. */
function findUnitEnd(bytes: Uint8Array, from: number, end: number, isApart: boolean): number {
  const first = bytes[from]
  // µ, in either of its two forms
  if ((first === 0xc2 && bytes[from + 1] === 0xb5) || (first === 0xce && bytes[from + 1] === 0xbc)) {
    return bytes[from + 2] === 0x73 && isWordEnd(bytes, from + 3, end) ? from + 3 : -1
  }
  if (!isInSet(unitStarts, first)) return -1
  const to = findRunEnd(bytes, from, Math.min(end, from + 13), hexLetter | letter)
  if (!isApart && to === from + 1 && isInSet(shortUnits, first)) return to
  if (!isWordEnd(bytes, to, end)) {
    // A number may follow, as in 1min30s.
    return !isApart && kindByByte[bytes[to] ?? 0] === digit && isUnit(bytes, from, to) ? to : -1
  }
  return isUnit(bytes, from, to) ? to : -1
}

/** `9:05`, `09:05:00`, `09:05:00.123`, each with a zone or without. A column after a line (`a.ts:10:15`) is none. */
function findClockEnd(bytes: Uint8Array, from: number, end: number): number {
  if (bytes[from - 1] === colon) return from
  const hours = findRunEnd(bytes, from, end, digit)
  if (hours - from > 2) return from
  let at = from
  for (let part = 0; part < 2; part += 1) {
    const colonAt = part === 0 ? hours : at
    if (bytes[colonAt] !== colon || !isInSet(tens, bytes[colonAt + 1])) break
    const to = findRunEnd(bytes, colonAt + 1, end, digit)
    if (to !== colonAt + 3 || to > end) return from
    at = to
  }
  if (at === from) return from
  if (
    (bytes[at] === dot || bytes[at] === comma) &&
    kindByByte[bytes[at + 1] ?? 0] === digit &&
    at + 1 < end
  ) {
    at = findRunEnd(bytes, at + 1, end, digit)
  }
  if (at < end && (bytes[at] === 0x5a || bytes[at] === 0x7a)) at += 1
  else if (at < end && isInSet(signs, bytes[at])) {
    const zone = findRunEnd(bytes, at + 1, end, digit)
    if (zone === at + 5) at = zone
    else if (zone === at + 3) at = bytes[zone] === colon ? findRunEnd(bytes, zone + 1, end, digit) : zone
  }
  if (!isWordEnd(bytes, at, end)) return from
  return bytes[at] === colon && kindByByte[bytes[at + 1] ?? 0] === digit ? from : at
}

/** `2026-03-01`, `2026/03/01`, `03/01/2026`, each with a clock time after it or without. */
function findDateEnd(bytes: Uint8Array, from: number, to: number, end: number): number {
  const mark = bytes[to]
  const second = findRunEnd(bytes, to + 1, end, digit)
  if (bytes[second] !== mark || second >= end) return from
  const third = findRunEnd(bytes, second + 1, end, digit)
  const [a, b, c] = [to - from, second - to - 1, third - second - 1]
  const isDate =
    (a === 4 && b >= 1 && b <= 2 && c >= 1 && c <= 2) ||
    (a <= 2 && b >= 1 && b <= 2 && c === 4 && mark === slash)
  if (!isDate) return from
  if (third < end && (bytes[third] === 0x54 || bytes[third] === space)) {
    const clock = findClockEnd(bytes, third + 1, end)
    if (clock > third + 1) return clock
  }
  return isWordEnd(bytes, third, end) ? third : from
}

/** The rest of a UUID whose first group ends at `from`. */
function findUuidEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  for (const length of [4, 4, 4, 12]) {
    if (bytes[at] !== dash) return from
    const to = findRunEnd(bytes, at + 1, end, digit | hexLetter)
    if (to !== at + 1 + length) return from
    at = to
  }
  return isWordEnd(bytes, at, end) ? at : from
}

/** `0x7f3a…` */
function isAddress(bytes: Uint8Array, from: number, to: number): boolean {
  return (
    bytes[from] === 0x30 &&
    (bytes[from + 1] === 0x78 || bytes[from + 1] === 0x58) &&
    to > from + 2 &&
    findRunEnd(bytes, from + 2, to, digit | hexLetter) === to
  )
}

/** `(node:4711)` */
function isProcess(bytes: Uint8Array, from: number, next: number | undefined): boolean {
  return next === 0x29 && bytes[from - 1] === colon && matchesText(bytes, from - 6, from, '(node')
}

/** A word that begins a date (`Mon, 02 Mar`, `Mar  2 2026`), or names an id that follows (`request id: …`). */
function findWordEnd(bytes: Uint8Array, from: number, to: number, end: number): number {
  const d = (bytes[to - 1] ?? 0) | 32
  const i = (bytes[to - 2] ?? 0) | 32
  if (d === 0x64 && i === 0x69) return findIdEnd(bytes, from, to, end)
  const next = bytes[to]
  if ((next !== space && next !== comma) || !isCalendarName(bytes, from, to)) return from
  return findCalendarEnd(bytes, to, end) ?? from
}

const calendarNames =
  'january february march april may june july august september october november december sept ' +
  'monday tuesday wednesday thursday friday saturday sunday'

/** Each in full and by its first three letters. */
const calendar: ReadonlySet<string> = new Set(
  calendarNames.split(' ').flatMap((name) => [name, name.slice(0, 3)]),
)

/** Most words are told by their first three letters to be none of them. */
const calendarStarts: ReadonlySet<number> = new Set(
  [...calendar].map((name) => packStart(new TextEncoder().encode(name), 0)),
)

function packStart(bytes: Uint8Array, from: number): number {
  const [a = 0, b = 0, c = 0] = [bytes[from], bytes[from + 1], bytes[from + 2]]
  return ((a | 32) << 16) | ((b | 32) << 8) | (c | 32)
}

function isCalendarName(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from < 3 || to - from > 9 || (bytes[from] ?? 0) > 0x5a) return false
  if (!calendarStarts.has(packStart(bytes, from))) return false
  return calendar.has(readAscii(bytes, from, to).toLowerCase())
}

/** Names, days and years that follow each other; at least one has to be a number that is no clock time. */
function findCalendarEnd(bytes: Uint8Array, from: number, end: number): number | null {
  let at = from
  let numbers = 0
  for (let part = 0; part < 4; part += 1) {
    let start = at
    while (start < end && start < at + 3 && (bytes[start] === space || bytes[start] === comma)) start += 1
    const to = findRunEnd(bytes, start, end, digit | hexLetter | letter)
    const digits = findRunEnd(bytes, start, end, digit)
    const isNumber =
      digits === to && to > start && bytes[to] !== colon && (to - start <= 2 || to - start === 4)
    if (start === at || (!isNumber && !isCalendarName(bytes, start, to))) break
    if (isNumber) numbers += 1
    at = to
  }
  return numbers > 0 ? at : null
}

/** What ids are called that are new each time whatever happens; ids of things that people work with are no noise. */
const namesOfIds: ReadonlySet<string> = new Set([
  'request',
  'trace',
  'span',
  'correlation',
  'session',
  'connection',
  'invocation',
  'process',
  'p',
])

/** `"requestId": "…"`, `x-trace-id: …`, `pid 4711` */
function findIdEnd(bytes: Uint8Array, from: number, to: number, end: number): number {
  let stem = readAscii(bytes, Math.max(from, to - 16), to - 2)
  if (stem === '') {
    let before = from - 1
    if (!isInSet(inNames, bytes[before])) return from
    while (before > 0 && before > from - 14 && (kindByByte[bytes[before - 1] ?? 0] ?? 0) > digit) before -= 1
    stem = readAscii(bytes, before, from - 1)
  }
  if (!namesOfIds.has(stem.toLowerCase())) return from
  let at = to
  let isNamed = stem.length === 1
  while (at < end && at < to + 8 && isInSet(beforeValues, bytes[at])) {
    isNamed ||= bytes[at] === colon || bytes[at] === 0x3d
    at += 1
  }
  if (!isNamed || at === to) return from
  const start = at
  while (at < end && at < start + 128 && (kindByByte[bytes[at] ?? 0] !== 0 || isInSet(inIds, bytes[at])))
    at += 1
  return at > start ? at : from
}

const inPath = createByteSet('._-+/')
const inIds = createByteSet('._-')
const inNames = createByteSet(' -_')
const beforeValues = createByteSet(' "\'\\:=')
const unitStarts = createByteSet('nmshdu\u00c2\u00ce')
const shortUnits = createByteSet('mhds')
const tens = createByteSet('012345')
const signs = createByteSet('+-')

const [space, comma, dash, dot, slash, one, colon] = [0x20, 0x2c, 0x2d, 0x2e, 0x2f, 0x31, 0x3a]

/** Where the bytes of these kinds end that begin at `from`. */
function findRunEnd(bytes: Uint8Array, from: number, end: number, wanted: number): number {
  let at = from
  while (at < end && ((kindByByte[bytes[at] ?? 0] ?? 0) & wanted) !== 0) at += 1
  return at
}

function isWordEnd(bytes: Uint8Array, at: number, end: number): boolean {
  return at >= end || kindByByte[bytes[at] ?? 0] === 0
}

function createByteSet(characters: string): Uint8Array {
  const set = new Uint8Array(256)
  for (const character of characters) set[character.charCodeAt(0)] = 1
  return set
}

function isInSet(set: Uint8Array, byte: number | undefined): boolean {
  return set[byte ?? 0] === 1
}

function matchesText(bytes: Uint8Array, from: number, end: number, text: string): boolean {
  if (from < 0 || from + text.length > end) return false
  for (let i = 0; i < text.length; i += 1) if (bytes[from + i] !== text.charCodeAt(i)) return false
  return true
}

function readAscii(bytes: Uint8Array, from: number, to: number): string {
  let text = ''
  for (let at = from; at < to; at += 1) text += String.fromCharCode(bytes[at] ?? 0)
  return text
}

function createKinds(): Uint8Array {
  const kind = new Uint8Array(256)
  for (let code = 0x30; code <= 0x39; code += 1) kind[code] = 1
  for (let code = 0x41; code <= 0x5a; code += 1) {
    kind[code] = code <= 0x46 ? 2 : 4
    kind[code + 32] = kind[code] ?? 0
  }
  return kind
}
