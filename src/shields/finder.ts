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
}

/** The kinds of things that are in the text, in the order of the finders. */
export function kindsIn(finders: readonly Finder[], text: string): string[] {
  const kinds = finders.flatMap((finder) => (spansIn(finder, text).next().done ? [] : [finder.kind]))
  return [...new Set(kinds)]
}

export interface Redacted {
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
): Redacted {
  const kinds = new Set<string>()
  for (let pass = 0; pass < mostPasses; pass += 1) {
    const found = kindsIn(finders, text)
    if (found.length === 0) return { text, kinds: [...kinds], clean: true }
    for (const kind of found) kinds.add(kind)
    for (const finder of finders) text = redact(finder, text, replacement(finder.kind))
  }
  return { text, kinds: [...kinds], clean: false }
}

function redact(finder: Finder, text: string, replacement: string): string {
  const pieces: string[] = []
  let end = 0
  for (const span of spansIn(finder, text)) {
    if (span.end === span.start) continue
    pieces.push(text.slice(end, span.start), replacement)
    end = span.end
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(end)
}

/** `matchAll` works on a copy of the pattern, so that no `lastIndex` is left behind. */
function* spansIn(
  { pattern, accepts }: Finder,
  text: string,
): Generator<{ start: number; end: number }, void> {
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
