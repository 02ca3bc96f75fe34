import { runAbortable } from '../core/base/abort.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { ChunkIndex, type FoundChunk } from './chunk-index.js'
import { type Chunk, chunkText } from './chunk-text.js'
import type { StoredDocument } from './documents.js'
import { Embedder, type Vector } from './embedder.js'
import type { ResolvedSearchOptions } from './search-options.js'
import { packVector, type StoredMemory } from './stored-memory.js'

/** The documents of a memory, and the index that follows them: it is brought up to date before each search. */
export class DocumentLibrary {
  readonly #options: ResolvedSearchOptions
  readonly #embedder: Embedder | undefined
  readonly #documents = new Map<string, StoredDocument>()
  /** What stands in the index: each document with the ids of its chunks. */
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

  /** Repeats itself for documents that were added or removed while it waited. */
  async #updateIndex(signal: AbortSignal): Promise<void> {
    for (;;) {
      const added = [...this.#documents.values()].filter((document) => !this.#indexed.has(document))
      const removed = [...this.#indexed.keys()].filter((document) => !this.#hasDocument(document))
      if (added.length === 0 && removed.length === 0) return
      const texts = added.flatMap((document) => this.#divide(document)).map(({ text }) => text)
      await this.#embedder?.prepare(texts, signal)
      // Not before there is something to index: only then the length of the vectors is known.
      const index =
        this.#index ?? (texts.length > 0 ? await ChunkIndex.create(this.#embedder?.size) : undefined)
      signal.throwIfAborted()
      this.#index = index
      for (const document of removed) this.#removeFromIndex(document)
      for (const document of added) {
        signal.throwIfAborted()
        if (this.#hasDocument(document)) this.#insert(document)
        // Indexing is work without waits: others have their turn between documents.
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

/**
 * Work that several wait for and that runs once at a time. It is stopped when the last of those who wait has given up,
 * so that no work goes on without a waiter.
 */
export class SharedWork {
  readonly #work: (signal: AbortSignal) => Promise<void>
  #running: { done: Promise<void>; controller: AbortController; waiting: number } | undefined

  constructor(work: (signal: AbortSignal) => Promise<void>) {
    this.#work = work
  }

  /** Waits for the work that is running, or starts it. Rejects with the signal's reason as soon as it aborts. */
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
    // A caller that has given up is not told of its failure.
    done.catch(() => {})
    return { done, controller, waiting: 0 }
  }
}
