import { runAbortable } from '../core/base/abort.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { type Chunk, ChunkIndex, chunkText, type FoundChunk } from './chunk-index.js'
import { packVector, type StoredDocument, type StoredMemory } from './documents.js'
import { Embedder, type EmbeddingOptions, type Vector } from './embedder.js'
import { checkInput, invalidInputError } from '../core/config/check-input.js'
import {
  amount,
  anything,
  choice,
  count,
  nonEmptyText,
  number,
  optional,
  predicate,
  record,
  section,
  wholeNumber,
} from '../core/config/kind.js'
import { checkBudgetList } from '../core/budgets/shared-budget.js'
/** The documents of a memory, and their index, which is updated before each search. */
export class DocumentLibrary {
  readonly #options: ResolvedSearchOptions
  readonly #embedder: Embedder | undefined
  readonly #documents = new Map<string, StoredDocument>()
  /** The indexed documents, with the ids of their chunks. */
  readonly #indexed = new Map<StoredDocument, string[]>()
  readonly #update = new SharedWork((signal) => this.#updateIndex(signal))
  #index: ChunkIndex | undefined
  #chunksEver = 0

  constructor(
    options: ResolvedSearchOptions,
    documents: Iterable<StoredDocument>,
    vectors: ReadonlyMap<string, Vector>,
  ) {
    this.#options = options
    this.#embedder = options.embeddings && new Embedder(options.embeddings)
    for (const [key, vector] of vectors) this.#embedder?.learn(key, vector)
    for (const document of documents) this.#documents.set(document.source, document)
  }

  get size(): number {
    return this.#documents.size
  }

  put(document: StoredDocument): void {
    if (this.#documents.get(document.source)?.text !== document.text) {
      this.#documents.set(document.source, document)
    }
  }

  delete(source: string): boolean {
    return this.#documents.delete(source)
  }

  async search(text: string, limit: number, signal: AbortSignal): Promise<FoundChunk[]> {
    await this.#update.join(signal)
    const index = this.#index
    if (index === undefined) return []
    const vector = await runAbortable(signal, async (own) => this.#embedder?.embedQuery(text, own.signal))
    const mode = vector === undefined ? 'text' : (this.#options.embeddings?.mode ?? 'hybrid')
    return await index.search({ text, vector, mode, limit })
  }

  toJSON(): StoredMemory {
    const { embeddings } = this.#options
    const texts = [...this.#documents.values()]
      .flatMap((document) => this.#divide(document))
      .map(({ text }) => text)
    return {
      version: 1,
      documents: [...this.#documents.values()],
      embeddings:
        this.#embedder === undefined || embeddings === undefined
          ? null
          : {
              model: embeddings.model,
              vectors: Object.fromEntries(
                [...this.#embedder.retain(texts)].map(([key, vector]) => [key, packVector(vector)]),
              ),
            },
    }
  }

  /** Repeats for documents that were changed in the meantime. */
  async #updateIndex(signal: AbortSignal): Promise<void> {
    for (;;) {
      const added = [...this.#documents.values()].filter((document) => !this.#indexed.has(document))
      const removed = [...this.#indexed.keys()].filter((document) => !this.#hasDocument(document))
      if (added.length === 0 && removed.length === 0) return
      const texts = added.flatMap((document) => this.#divide(document)).map(({ text }) => text)
      await this.#embedder?.prepare(texts, signal)
      // The length of the vectors is known only with the first document.
      const index =
        this.#index ?? (texts.length > 0 ? await ChunkIndex.create(this.#embedder?.size) : undefined)
      signal.throwIfAborted()
      this.#index = index
      for (const document of removed) this.#removeFromIndex(document)
      for (const document of added) {
        signal.throwIfAborted()
        if (this.#hasDocument(document)) this.#insert(document)
        // Indexing is synchronous, so other work runs between documents.
        await yieldToEventLoop()
      }
    }
  }

  #insert(document: StoredDocument): void {
    const chunks = this.#divide(document).map(({ text }) => ({
      id: String((this.#chunksEver += 1)),
      source: document.source,
      text,
      vector: this.#embedder?.findVector(text),
    }))
    this.#index?.insert(chunks)
    this.#indexed.set(
      document,
      chunks.map(({ id }) => id),
    )
  }

  #removeFromIndex(document: StoredDocument): void {
    this.#index?.remove(this.#indexed.get(document) ?? [])
    this.#indexed.delete(document)
  }

  #hasDocument(document: StoredDocument): boolean {
    return this.#documents.get(document.source) === document
  }

  #divide({ text }: StoredDocument): Chunk[] {
    return chunkText(text, this.#options)
  }
}

/** Work that several callers share and that runs once at a time. It stops when the last caller has given up. */
export class SharedWork {
  readonly #work: (signal: AbortSignal) => Promise<void>
  #running: { done: Promise<void>; controller: AbortController; waiting: number } | undefined

  constructor(work: (signal: AbortSignal) => Promise<void>) {
    this.#work = work
  }

  /** Waits for the running work, or starts it. Rejects with the signal's reason as soon as it aborts. */
  async join(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const running = (this.#running ??= this.#start())
    running.waiting += 1
    try {
      await runAbortable(signal, () => running.done)
    } finally {
      running.waiting -= 1
      if (running.waiting === 0 && this.#running === running) {
        this.#running = undefined
        running.controller.abort()
      }
    }
  }

  #start() {
    const controller = new AbortController()
    const done = this.#work(controller.signal)
    // A caller that has given up ignores its failure.
    done.catch(() => {})
    return { done, controller, waiting: 0 }
  }
}

/** Options for dividing and searching documents. */
export interface SearchOptions {
  /** Maximum snippets of one search. Default 5. */
  topK?: number
  /**
   * Drops snippets below this score. Word search uses BM25, from 0 without an upper bound. `vector` uses the cosine, up
   * to 1. `hybrid` scores are 0 to 1, relative to the best snippet. Drops none by default.
   */
  minScore?: number
  /** Maximum characters of all snippets of one search; the last one is cut. Unlimited by default. */
  maxChars?: number
  /** Characters of a chunk, 50 to 10 000. Default 1500. */
  chunkChars?: number
  /**
   * Characters that a chunk shares with the previous one, less than half of `chunkChars`. Defaults to a tenth of it.
   */
  overlap?: number
  /** Also searches by meaning. By default, searches by words only. */
  embeddings?: EmbeddingOptions
}

const clientKind = predicate<EmbeddingOptions['client']>(
  (value) => typeof (value as EmbeddingOptions['client'] | null)?.embeddings?.create === 'function',
  'an OpenAI client, such as new OpenAI()',
)

const searchOptionsKind = section({
  topK: count(1),
  minScore: number(-Infinity, Infinity, 'a number'),
  maxChars: count(1),
  chunkChars: wholeNumber(50, 10_000, 'a whole number from 50 to 10000'),
  overlap: count(0),
  embeddings: record({
    client: clientKind,
    model: nonEmptyText(),
    dimensions: optional(count(1)),
    batch: optional(count(1)),
    mode: optional(choice('hybrid', 'vector')),
    budgets: optional(anything),
    inputPerMillion: optional(amount('USD')),
  }),
})

export type ResolvedSearchOptions = ReturnType<typeof resolveSearchOptions>

/** @throws {ConfigError} for invalid options */
export function resolveSearchOptions(options: SearchOptions) {
  const checked = checkInput(searchOptionsKind, options, 'memory options')
  const { topK = 5, minScore, maxChars = Infinity, chunkChars = 1500 } = checked
  const { budgets } = options.embeddings ?? {}
  if (budgets !== undefined) checkBudgetList(budgets, 'embeddings.budgets')
  const overlap = checked.overlap ?? Math.floor(chunkChars / 10)
  if (overlap * 2 >= chunkChars) {
    throw invalidInputError('memory options', [
      { path: 'overlap', sentence: `overlap must be less than half of chunkChars (${chunkChars}).` },
    ])
  }
  return {
    topK,
    minScore: minScore ?? -Infinity,
    maxChars,
    chunkChars,
    overlap,
    embeddings: options.embeddings,
  }
}
