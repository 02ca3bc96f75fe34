/** Finds one kind of thing in a text. */
export interface Finder {
  kind: string
  /**
   * Global, so that it finds all. What its group `kept` matches (at its start) stays when the rest is redacted. A group
   * `candidate` in a lookahead lets candidates overlap: one may begin within another that is none.
   */
  pattern: RegExp
  /** How many characters of a match or candidate, `kept` not counted, really are one; 0 for none. Default: all. */
  accepts?: (match: string) => number
  /**
   * What else it is found in: `plainly`, in the text without invisible characters and disguised letters; `unbroken`, in
   * the same with its lines joined, too. Default: in nothing but the text as it is.
   */
  reads?: 'plainly' | 'unbroken'
  /**
   * For where lines are joined: the pattern without its boundaries, and what each (sticky) has to match there, unless a
   * line begins.
   */
  wrapped?: { pattern: RegExp; start: RegExp; end: RegExp }
}

/** The kinds of things that are in the text, in the order of the finders. */
export function listKinds(finders: readonly Finder[], text: string): string[] {
  return [...new Set(listMatching(finders, text).map(({ kind }) => kind))]
}

function listMatching(finders: readonly Finder[], text: string): Finder[] {
  const readings = createReadings(finders, text)
  return finders.filter((finder) => readings(finder).some((view) => !findSpans(finder, view).next().done))
}

interface Span {
  start: number
  end: number
}

export interface RedactedText {
  text: string
  kinds: string[]
  /** False when something is still there: it has no characters of its own, or comes again and again. */
  clean: boolean
}

/** What is put together by a redaction may be another thing to redact. Twice is rare; more is a replacement's fault. */
const mostPasses = 10

/** The text with everything replaced that the finders find. */
export function redactAll(
  finders: readonly Finder[],
  text: string,
  replacement: (kind: string) => string,
): RedactedText {
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
  // What several readings have found overlaps, and goes at once.
  for (const span of spans.sort((a, b) => a.start - b.start)) {
    if (span.end <= end) continue
    if (span.start >= end) pieces.push(text.slice(end, span.start), replacement)
    end = span.end
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(end)
}

/** Whether another reading has found the rest of a thing, and not the word that the next line begins with. */
function isMore(rest: string): boolean {
  return /\d/.test(rest) && rest.trim().length >= shortestRest
}

const shortestRest = 8

/** The ways in which a finder reads the text, the text as it is first. */
function createReadings(finders: readonly Finder[], text: string): (finder: Finder) => View[] {
  const itself = createIdentityView(text)
  if (finders.every(({ reads }) => reads === undefined)) return () => [itself]
  const { plain, joined } = createViews(text)
  const plainly = plain === null ? [itself] : [itself, plain]
  const unbroken = joined === null ? plainly : [...plainly, joined]
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

/** `matchAll` works on a copy of the pattern, so that no `lastIndex` is left behind. */
function* matchSpans({ pattern, accepts }: Finder, text: string): Generator<Span, void> {
  // Most texts have none, and to copy the pattern costs more than to look.
  if (text.search(pattern) < 0) return
  let end = 0
  for (const { 0: match, index, groups } of text.matchAll(pattern)) {
    const kept = groups?.kept?.length ?? 0
    const start = index + kept
    if (start < end) continue
    const found = groups?.candidate ?? match.slice(kept)
    const length = accepts ? accepts(found) : found.length
    if (accepts && length === 0) continue
    end = start + length
    yield { start, end }
  }
}

/** A reading of a text, and which characters of the original each of its characters stands for. */
interface View {
  text: string
  /** The original's characters from `start(i)` to `end(i)` are the view's character `i`. */
  start: (index: number) => number
  end: (index: number) => number
  /** Whether a line begins there that was joined to the one before. */
  begins?: (index: number) => boolean
}

/** Nothing that is seen: zero-width and soft characters, marks of direction, variation selectors, fillers. */
const invisible = /[\p{Cf}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/u

/**
 * The other ways in which a text can be read, where they differ from the first: without what is invisible and with plain
 * letters for their full-width, bold, circled, … forms; and the same with the lines joined. Escapes of JSON text count as
 * what they stand for.
 */
function createViews(text: string): { plain: View | null; joined: View | null } {
  const plain = isPlain(text) ? null : createPlainView(text)
  const joined = /[\r\n]|\\[rn]/.test(text) ? createJoinedView(plain ?? createIdentityView(text)) : null
  return { plain, joined }
}

function isPlain(text: string): boolean {
  if (/\\u[\da-fA-F]{4}/.test(text)) return false
  return /^[\0-\x7f]*$/.test(text) || (!invisible.test(text) && text.normalize('NFKC') === text)
}

/** The text itself. */
function createIdentityView(text: string): View {
  return { text, start: (index) => index, end: (index) => index + 1 }
}

function createPlainView(text: string): View {
  const pieces: string[] = []
  const starts: number[] = []
  const ends: number[] = []
  for (const { 0: found, index } of text.matchAll(/\\u([\da-fA-F]{4})|[\0-[\]-\x7f]+|\\?[^]/gu)) {
    if (found.charCodeAt(0) < 0x80 && !found.startsWith('\\')) {
      // Of plain letters each stands for itself; the others are few.
      pieces.push(found)
      for (let at = index; at < index + found.length; at += 1) {
        starts.push(at)
        ends.push(at + 1)
      }
      continue
    }
    const read = found.startsWith('\\u') && found.length === 6 ? unescapeJson(found) : found
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

function unescapeJson(escape: string): string {
  return String.fromCharCode(Number.parseInt(escape.slice(2), 16))
}

/** Without the ends of lines, and the space that the next ones begin with. */
function createJoinedView({ text, start, end }: View): View {
  const kept: [from: number, at: number][] = []
  const pieces: string[] = []
  let from = 0
  let length = 0
  const keep = (to: number): void => {
    if (to > from) {
      kept.push([length, from])
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
    let [low, high] = [0, kept.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((kept[middle]?.[0] ?? 0) <= index) low = middle
      else high = middle - 1
    }
    return kept[low] ?? [0, 0]
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

/**
 * Where a word can begin, as the source of a pattern: not behind one of its own characters and not right behind a
 * backslash, but behind an escape such as \n or \u0020, because arguments of tools are JSON text.
 */
export function createWordStart(characters = String.raw`\w\-`): string {
  return String.raw`(?:(?<![${characters}\\])|(?<=\\[bfnrt])|(?<=\\u[\da-fA-F]{4}))`
}
