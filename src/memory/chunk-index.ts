import type * as OramaModule from '@orama/orama'
import type { DefaultTokenizer, Orama } from '@orama/orama'
import { loadPeer } from '../core/base/platform.js'
import { splitsPair } from '../core/base/text.js'
import type { Vector } from './embedder.js'

interface IndexedChunk {
  id: string
  source: string
  text: string
  vector: Vector | undefined
}

interface IndexQuery {
  text: string
  vector: Vector | undefined
  mode: 'text' | 'hybrid' | 'vector'
  limit: number
}

/** The lowest similarity, which is above 0 because Orama divides by the best similarity. */
const leastSimilarity = 1e-6

type Database = Orama<{ source: 'string'; text: 'string' }>

export type ChunkIndex = Awaited<ReturnType<typeof createChunkIndex>>

/** The index: Orama, an embedded search engine without a service. Without `vectorSize`, it has no vectors. */
export async function createChunkIndex(vectorSize: number | undefined) {
  const orama = await loadPeer<typeof OramaModule>('@orama/orama', 'memory()')
  const stemmer = orama.components.tokenizer.createTokenizer({ stemming: true }) as DefaultTokenizer
  const tokens = createWordTokenizer((word) => stemmer.stemmer?.(word) ?? word)
  const database = orama.create({
    schema: {
      source: 'string',
      text: 'string',
      ...(vectorSize !== undefined && { vector: `vector[${vectorSize}]` as const }),
    },
    sort: { enabled: false },
    components: {
      tokenizer: {
        language: 'english',
        normalizationCache: new Map(),
        // Orama passes the property when it indexes, but not when it searches.
        tokenize: (text, _language, property) =>
          property === undefined ? tokens.ofQuery(text) : tokens.ofDocument(text),
      },
    },
  }) as unknown as Database

  return {
    insert(chunks: readonly IndexedChunk[]): void {
      for (const { id, source, text, vector } of chunks)
        void orama.insert(database, { id, source, text, ...(vector && { vector: [...vector] }) })
    },
    remove(ids: readonly string[]): void {
      for (const id of ids) void orama.remove(database, id)
    },
    async search({ text, vector, mode, limit }: IndexQuery) {
      const { hits } = await orama.search(database, { ...toOramaQuery(text, vector, mode), limit })
      return hits.map(({ score, document }) => ({ source: document.source, text: document.text, score }))
    },
  }
}

function toOramaQuery(term: string, vector: Vector | undefined, mode: IndexQuery['mode']) {
  if (vector === undefined || mode === 'text') return { mode: 'fulltext' as const, term }
  const near = { vector: { value: [...vector], property: 'vector' }, similarity: leastSimilarity }
  return mode === 'hybrid' ? { mode, term, ...near } : { mode, ...near }
}

/** English words that carry no meaning in a search. They are searched only if the query has no other words. */
const functionWords = new Set(
  `a about an and any are as at be but by can could did do does for from had has have how i if in into is it its me my
  no not of on or our please should so some tell than that the their them then there these they this to us was we were
  what when where which who why will with would you your`.split(/\s+/),
)

/** Ends every indexed word, so that a search for a prefix differs from a search for the whole word. */
const wordEnd = '$'

/** From this length on, a query word also matches longer words with this prefix. */
const prefixLength = 5

const word = /[\p{L}\p{M}\p{N}]+/gu

const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u

/**
 * Splits texts into words, in every script, without case and accents, reduced to their English stem. The end mark also
 * avoids names of built-in properties (`constructor`), which break the index.
 */
function createWordTokenizer(stem: (word: string) => string) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' })
  const divide = (run: string) =>
    unspaced.test(run) ? Array.from(segmenter.segment(run), ({ segment }) => segment) : [run]
  const words = (text: string) => (normalizeText(text).match(word) ?? []).flatMap(divide)
  return {
    ofDocument: (text: string) => removeDuplicates(words(text).map((each) => stem(each) + wordEnd)),
    ofQuery: (text: string) => {
      const all = words(text)
      const distinctive = all.filter((each) => !functionWords.has(each))
      const stems = (distinctive.length > 0 ? distinctive : all).map(stem)
      return removeDuplicates(stems.map((each) => (each.length >= prefixLength ? each : each + wordEnd)))
    },
  }
}

/** Normalizes letters: lower case, without Latin, Greek and Cyrillic accents. */
function normalizeText(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036F]/g, '')
    .normalize('NFC')
    .toLowerCase()
}

const removeDuplicates = (words: readonly string[]): string[] => [...new Set(words)]

export interface Chunk {
  start: number
  text: string
}

interface ChunkOptions {
  chunkChars: number
  /** The number of characters at the end of a chunk that the next chunk repeats. Less than half of `chunkChars`. */
  overlap: number
}

/** Break points of a text, best first. The next chunk may start at the end of a match. */
const breaks = [
  /\n[ \t\r]*\n/g, // a paragraph
  /[.!?…]['")\]’”»]*\s|[。！？]|\n/g, // a sentence or a line
  /\s/g, // a word
]

/**
 * Divides a text for an index at the end of a paragraph, or else of a sentence, or else of a word. It never splits a
 * surrogate pair, and drops only whitespace.
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

/** The best break in the second half, because a short chunk is worse than a bad break. */
function findEnd(text: string, start: number, limit: number): number {
  const from = start + Math.ceil((limit - start) / 2)
  const half = text.slice(from, limit)
  for (const pattern of breaks) {
    const last = [...half.matchAll(pattern)].at(-1)
    if (last !== undefined) return from + last.index + last[0].length
  }
  return splitsPair(text, limit) ? limit - 1 : limit
}

/** The start of a word at or after `from`, so that an overlap does not start with half a word. */
function findStart(text: string, from: number, end: number): number {
  const space = text.slice(from - 1, end).search(/\s/)
  if (space >= 0) return from - 1 + space
  return splitsPair(text, from) ? from - 1 : from
}

function skipSpace(text: string, from: number): number {
  const rest = /\S/g
  rest.lastIndex = from
  return rest.exec(text)?.index ?? text.length
}
