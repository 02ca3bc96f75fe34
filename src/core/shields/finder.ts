/** Finds one kind of content in a text. */
export interface Finder {
  kind: string
  /**
   * The pattern to find. Must have the `g` flag. A group `prefix` at the start of a match is not redacted. A group
   * `candidate` in a lookahead allows overlapping candidates.
   */
  pattern: RegExp
  /** How many characters of a match (without `prefix`) are valid, or 0. Defaults to all. */
  accepts?: (match: string) => number
  /**
   * Additional readings of the text. `plainly` ignores invisible characters and normalizes lookalike letters.
   * `unbroken` also joins lines. By default, only the original text is read.
   */
  reads?: 'plainly' | 'unbroken'
  /** For joined lines, without boundaries; the (sticky) boundaries do not apply at the start of a line. */
  wrapped?: { pattern: RegExp; start: RegExp; end: RegExp }
}

export const listKinds = (finders: readonly Finder[], text: string): string[] => [
  ...new Set(listMatching(finders, text).map(({ kind }) => kind)),
]

function listMatching(finders: readonly Finder[], text: string): Finder[] {
  const readings = createReadings(finders, text)
  return finders.filter((finder) => readings(finder).some((view) => !findSpans(finder, view).next().done))
}

interface Span {
  start: number
  end: number
}

/** A redaction may create another match. After more than two passes, the replacement text itself causes the matches. */
const mostPasses = 10

/** Replaces all matches. The text is not `clean` if it still contains a match that cannot be removed. */
export function redactAll(
  finders: readonly Finder[],
  text: string,
  replacement: (kind: string) => string,
): { text: string; kinds: string[]; clean: boolean } {
  const kinds = new Set<string>()
  for (let pass = 0; pass < mostPasses; pass += 1) {
    const found = listMatching(finders, text)
    if (found.length === 0) return { text, kinds: [...kinds], clean: true }
    for (const { kind } of found) kinds.add(kind)
    for (const finder of finders)
      if (found.includes(finder)) text = redactSpans(finder, text, replacement(finder.kind))
  }
  return { text, kinds: [...kinds], clean: false }
}

function redactSpans(finder: Finder, text: string, replacement: string): string {
  const spans: Span[] = []
  const known = new Map<number, number>()
  for (const view of createReadings([finder], text)(finder)) {
    for (const found of findSpans(finder, view)) {
      if (found.end === found.start) continue
      const span = { start: view.start(found.start), end: view.end(found.end - 1) }
      const before = known.get(span.start)
      if (before !== undefined && !isMore(text.slice(before, span.end))) continue
      known.set(span.start, span.end)
      spans.push(span)
    }
  }
  const pieces: string[] = []
  let end = 0
  // Matches of several readings can overlap, so they are replaced together.
  for (const span of spans.sort((a, b) => a.start - b.start)) {
    if (span.end <= end) continue
    if (span.start >= end) pieces.push(text.slice(end, span.start), replacement)
    end = span.end
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(end)
}

/** Whether another reading extends the match instead of adding the next word. */
const isMore = (rest: string): boolean => /\d/.test(rest) && rest.trim().length >= 8

/**
 * The text, and its normalized readings if they differ. In both, invisible characters are removed, full-width, bold and
 * circled letters become plain letters, and JSON escapes are decoded. The second one also joins lines.
 */
function createReadings(finders: readonly Finder[], text: string): (finder: Finder) => View[] {
  const itself: View = { text, start: (index) => index, end: (index) => index + 1 }
  if (finders.every(({ reads }) => reads === undefined)) return () => [itself]
  const plain = isPlain(text) ? itself : createPlainView(text)
  const plainly = plain === itself ? [itself] : [itself, plain]
  const unbroken = /[\r\n]|\\[rn]/.test(text) ? [...plainly, createJoinedView(plain)] : plainly
  return ({ reads }) => (reads === 'unbroken' ? unbroken : reads === 'plainly' ? plainly : [itself])
}

function* findSpans(finder: Finder, { text, begins }: View): Generator<Span, void> {
  const { wrapped } = finder
  if (begins === undefined || wrapped === undefined) {
    yield* matchSpans(finder, text)
    return
  }
  const isBounded = (boundary: RegExp, at: number): boolean => {
    boundary.lastIndex = at
    return begins(at) || boundary.test(text)
  }
  for (const span of matchSpans({ ...finder, pattern: wrapped.pattern }, text)) {
    if (isBounded(wrapped.start, span.start) && isBounded(wrapped.end, span.end)) yield span
  }
}

/** `matchAll` copies the pattern, so the pattern's `lastIndex` does not change. */
function* matchSpans({ pattern, accepts }: Finder, text: string): Generator<Span, void> {
  // Copying the pattern costs more than testing it.
  if (text.search(pattern) < 0) return
  let end = 0
  for (const { 0: match, index, groups } of text.matchAll(pattern)) {
    const prefixLength = groups?.prefix?.length ?? 0
    const start = index + prefixLength
    if (start < end) continue
    const found = groups?.candidate ?? match.slice(prefixLength)
    const length = accepts ? accepts(found) : found.length
    if (accepts && length === 0) continue
    end = start + length
    yield { start, end }
  }
}

interface View {
  text: string
  /** Character `i` corresponds to the characters from `start(i)` to `end(i)` of the original. */
  start: (index: number) => number
  end: (index: number) => number
  /** Whether a joined line starts at this index. */
  begins?: (index: number) => boolean
}

/** Such as zero-width characters, soft hyphens, direction marks, variation selectors and fillers. */
const invisible = /[\p{Cf}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/u

function isPlain(text: string): boolean {
  if (/\\u[\da-fA-F]{4}/.test(text)) return false
  return /^[\0-\x7f]*$/.test(text) || (!invisible.test(text) && text.normalize('NFKC') === text)
}

function createPlainView(text: string): View {
  const pieces: string[] = []
  const starts: number[] = []
  const ends: number[] = []
  for (const { 0: found, index } of text.matchAll(/\\u([\da-fA-F]{4})|[\0-[\]-\x7f]+|\\?[^]/gu)) {
    if (found.charCodeAt(0) < 0x80 && !found.startsWith('\\')) {
      // Only letters that are not plain need a mapping.
      pieces.push(found)
      for (let at = index; at < index + found.length; at += 1) {
        starts.push(at)
        ends.push(at + 1)
      }
      continue
    }
    const [, code] = /^\\u([\da-f]{4})$/i.exec(found) ?? []
    const read = code === undefined ? found : String.fromCharCode(Number.parseInt(code, 16))
    if (invisible.test(read)) continue
    const plain = /^[\0-\x7f]*$/.test(read) ? read : read.normalize('NFKC')
    pieces.push(plain)
    for (let i = 0; i < plain.length; i += 1) {
      starts.push(index)
      ends.push(index + found.length)
    }
  }
  return { text: pieces.join(''), start: (i) => starts[i] ?? text.length, end: (i) => ends[i] ?? text.length }
}

function createJoinedView({ text, start, end }: View): View {
  const offsets: [from: number, at: number][] = []
  const pieces: string[] = []
  let from = 0
  let length = 0
  const keep = (to: number): void => {
    if (to > from) {
      offsets.push([length, from])
      pieces.push(text.slice(from, to))
      length += to - from
    }
  }
  for (const { 0: found, index } of text.matchAll(/(?:\r|\n|\\r|\\n)[\t ]*/g)) {
    keep(index)
    from = index + found.length
  }
  keep(text.length)
  const pieceAt = (index: number): [at: number, from: number] => {
    let [low, high] = [0, offsets.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((offsets[middle]?.[0] ?? 0) <= index) low = middle
      else high = middle - 1
    }
    return offsets[low] ?? [0, 0]
  }
  const original = (index: number): number => {
    const [at, from] = pieceAt(index)
    return from + index - at
  }
  return {
    text: pieces.join(''),
    start: (i) => start(original(i)),
    end: (i) => end(original(i)),
    begins: (i) => pieceAt(i)[0] === i,
  }
}

/** Not after a word character or a backslash, except after an escape such as \n or \u0020: arguments are JSON text. */
export function createWordStart(characters = String.raw`\w\-`): string {
  return String.raw`(?:(?<![${characters}\\])|(?<=\\[bfnrt])|(?<=\\u[\da-fA-F]{4}))`
}
