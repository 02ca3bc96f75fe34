export interface Chunk {
  /** Where it begins in the text (UTF-16 units). */
  start: number
  text: string
}

export interface ChunkOptions {
  /** Characters a chunk at most. */
  chunkChars: number
  /** Characters of a chunk that begin the next one, too. Less than half of `chunkChars`. */
  overlap: number
}

/** Where a text is best divided, best first. A match ends where the next chunk may begin. */
const breaks = [
  /\n[ \t\r]*\n/g, // a paragraph
  /[.!?…]['")\]’”»]*\s|[。！？]|\n/g, // a sentence or a line
  /\s/g, // a word
]

/**
 * Divides a text into pieces for an index: at the end of a paragraph, else of a sentence, else of a word, never inside
 * a surrogate pair. Only whitespace is ever left out.
 */
export function chunkText(text: string, { chunkChars, overlap }: ChunkOptions): Chunk[] {
  const chunks: Chunk[] = []
  const { length } = text.trimEnd()
  for (let start = skipSpace(text, 0); start < length; ) {
    const limit = start + chunkChars
    const end = limit >= length ? length : findEnd(text, start, limit)
    chunks.push({ start, text: text.slice(start, end).trimEnd() })
    if (end === length) break
    start = skipSpace(text, findStart(text, end - overlap, end))
  }
  return chunks
}

/** The best end in the second half of what would fit: a better break is not worth a short chunk. */
function findEnd(text: string, start: number, limit: number): number {
  const from = start + Math.ceil((limit - start) / 2)
  const half = text.slice(from, limit)
  for (const pattern of breaks) {
    const last = [...half.matchAll(pattern)].at(-1)
    if (last !== undefined) return from + last.index + last[0].length
  }
  return alignToCharacter(text, limit)
}

/** The beginning of a word at or after `from`, so that an overlap does not begin with half a word. */
function findStart(text: string, from: number, end: number): number {
  const space = text.slice(from - 1, end).search(/\s/)
  return space === -1 ? alignToCharacter(text, from) : from - 1 + space
}

function skipSpace(text: string, from: number): number {
  const rest = /\S/g
  rest.lastIndex = from
  return rest.exec(text)?.index ?? text.length
}

/** The same place, or one before it when it divides a surrogate pair. */
function alignToCharacter(text: string, at: number): number {
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(at - 1, at + 1)) ? at - 1 : at
}
