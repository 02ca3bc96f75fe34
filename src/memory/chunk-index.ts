import type * as OramaModule from '@orama/orama'
import type { DefaultTokenizer, Orama } from '@orama/orama'
import { loadPeer } from '../core/base/lazy-load.js'
import type { Vector } from './embedder.js'
import { createWordTokenizer } from './word-tokenizer.js'

export interface IndexedChunk {
  /** Unique in the index. */
  id: string
  source: string
  text: string
  vector: Vector | undefined
}

export interface FoundChunk {
  source: string
  text: string
  score: number
}

export interface IndexQuery {
  text: string
  vector: Vector | undefined
  mode: 'text' | 'hybrid' | 'vector'
  limit: number
}

/** Kept above 0: Orama divides by the best similarity. */
const leastSimilarity = 1e-6

type Database = Orama<{ source: 'string'; text: 'string' }>

/** The index itself: Orama, an embedded search engine without a service or dependencies. */
export class ChunkIndex {
  readonly #orama: typeof OramaModule
  readonly #database: Database

  private constructor(orama: typeof OramaModule, database: Database) {
    this.#orama = orama
    this.#database = database
  }

  /** An empty index; `vectorSize` is the length of its vectors, undefined for one without. */
  static async create(vectorSize: number | undefined): Promise<ChunkIndex> {
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
          // Orama names the property when it indexes and none when it searches.
          tokenize: (text, _language, property) =>
            property === undefined ? tokens.ofQuery(text) : tokens.ofDocument(text),
        },
      },
    })
    return new ChunkIndex(orama, database as unknown as Database)
  }

  insert(chunks: readonly IndexedChunk[]): void {
    for (const { id, source, text, vector } of chunks) {
      void this.#orama.insert(this.#database, { id, source, text, ...(vector && { vector: [...vector] }) })
    }
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) void this.#orama.remove(this.#database, id)
  }

  async search({ text, vector, mode, limit }: IndexQuery): Promise<FoundChunk[]> {
    const { hits } = await this.#orama.search(this.#database, {
      ...toOramaQuery(text, vector, mode),
      limit,
    })
    return hits.map(({ score, document }) => ({ source: document.source, text: document.text, score }))
  }
}

function toOramaQuery(term: string, vector: Vector | undefined, mode: IndexQuery['mode']) {
  if (vector === undefined || mode === 'text') return { mode: 'fulltext' as const, term }
  const near = { vector: { value: [...vector], property: 'vector' }, similarity: leastSimilarity }
  return mode === 'hybrid' ? { mode, term, ...near } : { mode, ...near }
}
