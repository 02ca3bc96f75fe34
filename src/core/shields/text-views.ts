/** A reading of a text, and which characters of the original each of its characters stands for. */
export interface View {
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
export function createViews(text: string): { plain: View | null; joined: View | null } {
  const plain = isPlain(text) ? null : createPlainView(text)
  const joined = /[\r\n]|\\[rn]/.test(text) ? createJoinedView(plain ?? createIdentityView(text)) : null
  return { plain, joined }
}

function isPlain(text: string): boolean {
  if (/\\u[\da-fA-F]{4}/.test(text)) return false
  return /^[\0-\x7f]*$/.test(text) || (!invisible.test(text) && text.normalize('NFKC') === text)
}

/** The text itself. */
export function createIdentityView(text: string): View {
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
