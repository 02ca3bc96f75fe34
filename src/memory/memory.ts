import * as z from 'zod'
import { optionsRule, expectArgument } from '../core/base/values.js'
import { truncate } from '../../guards/lib/words.js'
import { defineTool } from '../core/tools/define-tool.js'
import type { Tool } from '../core/tools/tool.js'
import { formatSnippets } from '../core/memory/retrieved-text.js'
import {
  type MemoryDocument,
  readDocuments,
  type StoredDocument,
  readStoredMemory,
  type StoredMemory,
  packVector,
} from './documents.js'
import type { RetrievedSnippet, Retriever } from '../core/memory/retriever.js'
import { runAbortable } from '../core/base/abort.js'
import { yieldToEventLoop } from '../core/base/platform.js'
import { type ChunkIndex, chunkText, createChunkIndex } from './chunk-index.js'
import { createEmbedder, type EmbeddingOptions, type Vector } from './embedder.js'
import { checkInput, invalidInputError } from '../core/config/check-input.js'
import * as is from '../core/config/kind.js'
import { checkBudgetList } from '../core/budgets/shared-budget.js'

/**
 * The initial documents and search options for a memory.
 *
 * @example
 * const options: MemoryOptions = { documents: [{ source: 'a.md', text: 'A.' }], topK: 3, maxChars: 4_000 }
 * const handbook = memory(options)
 */
export interface MemoryOptions extends SearchOptions {
  /** The initial documents, such as loaded attachments. `add` adds more. */
  documents?: readonly MemoryDocument[]
}

/** Documents that can be searched. The first search creates the index. */
export interface Memory extends Retriever {
  /**
   * Like `retrieve` of a `Retriever`, except that both options are optional.
   *
   * @example
   * const [best] = await memory({ documents }).retrieve('vacation', { limit: 1, signal })
   */
  retrieve(
    query: string,
    options?: { signal?: AbortSignal; limit?: number },
  ): Promise<readonly RetrievedSnippet[]>
  /**
   * Adds documents. An unchanged document has no effect. A new text with a known source replaces the old one.
   *
   * @example
   * memory().add([{ source: 'travel.md', text: 'Trains are booked in second class.' }])
   */
  add(documents: readonly MemoryDocument[]): void
  /**
   * Removes a document. Returns false if it does not exist.
   *
   * @example
   * memory({ documents }).remove('leave.md') // true
   */
  remove(source: string): boolean
  /** The number of documents. */
  readonly size: number
  /**
   * A tool that searches this memory. Default name: `search_memory`.
   *
   * @example
   * createAgent({ model, tools: [memory({ documents }).tool({ name: 'search_handbook' })] })
   */
  tool(options?: { name?: string; description?: string }): Tool<{ query: string; limit?: number | undefined }>
  /**
   * The data for `restoreMemory`, including embeddings.
   *
   * @example
   * const text = JSON.stringify(memory({ documents })) // back with restoreMemory(JSON.parse(text))
   */
  toJSON(): StoredMemory
}

/** The maximum length of a query. Longer queries do not improve results, and embeddings refuse them. */
const maxQueryChars = 4000

/**
 * A memory with an index inside the process, without a service. Needs the package `@orama/orama`.
 *
 * ```ts
 * const handbook = memory({ documents: [{ source: 'leave.md', text: 'Everyone has 30 days of leave.' }] })
 * const agent = createAgent({ model, tools: [handbook.tool()] })
 * ```
 *
 * `retrieve` rejects with the embeddings client's error after its last retry. The next call tries again.
 * @throws {ConfigError} for invalid options, {MemoryError} for unusable documents
 */
export function memory(memoryOptions: MemoryOptions = {}): Memory {
  expectArgument('memory(options)', memoryOptions, optionsRule)
  const { documents = [], ...options } = memoryOptions
  return createMemory(readDocuments(documents).values(), options)
}

/**
 * Restores a memory from `toJSON()`. Pass the options of the memory again, because they are not stored. Embeddings are
 * reused if the model and the chunks are the same.
 *
 * @example const handbook = restoreMemory(JSON.parse(await readFile('handbook.json', 'utf8')))
 * @throws {MemoryError} `invalid_stored_memory`
 */
export function restoreMemory(json: unknown, options: SearchOptions = {}): Memory {
  const stored = readStoredMemory(json)
  const reusable = stored.model === options.embeddings?.model
  return createMemory(stored.documents, options, reusable ? stored.vectors : new Map())
}

function createMemory(
  initial: Iterable<StoredDocument>,
  searchOptions: SearchOptions,
  vectors: ReadonlyMap<string, Vector> = new Map(),
): Memory {
  const options = resolveSearchOptions(searchOptions)
  const { topK, minScore, maxChars, embeddings } = options
  const embedder = embeddings && createEmbedder(embeddings)
  const documents = new Map<string, StoredDocument>()
  /** The ids of the chunks of each indexed document. The index is updated before each search. */
  const indexed = new Map<StoredDocument, string[]>()
  const joinUpdate = shareWork(updateIndex)
  let index: ChunkIndex | undefined
  let chunksEver = 0

  for (const [key, vector] of vectors) embedder?.learn(key, vector)
  for (const document of initial) documents.set(document.source, document)

  const divide = ({ text }: StoredDocument): string[] => chunkText(text, options).map((chunk) => chunk.text)
  const isCurrent = (document: StoredDocument): boolean => documents.get(document.source) === document

  /** Runs again if documents were changed in the meantime. */
  async function updateIndex(signal: AbortSignal): Promise<void> {
    for (;;) {
      const added = [...documents.values()].filter((document) => !indexed.has(document))
      const removed = [...indexed.keys()].filter((document) => !isCurrent(document))
      if (added.length === 0 && removed.length === 0) return
      const texts = added.flatMap(divide)
      await embedder?.prepare(texts, signal)
      // The length of the vectors is known only with the first document.
      const ready = index ?? (texts.length > 0 ? await createChunkIndex(embedder?.size) : undefined)
      signal.throwIfAborted()
      index = ready
      for (const document of removed) {
        index?.remove(indexed.get(document) ?? [])
        indexed.delete(document)
      }
      for (const document of added) {
        signal.throwIfAborted()
        if (isCurrent(document)) insert(document)
        // Indexing is synchronous, so other work runs between documents.
        await yieldToEventLoop()
      }
    }
  }

  function insert(document: StoredDocument): void {
    const { source } = document
    const chunks = divide(document).map((text) => {
      return { id: String((chunksEver += 1)), source, text, vector: embedder?.findVector(text) }
    })
    index?.insert(chunks)
    indexed.set(
      document,
      chunks.map(({ id }) => id),
    )
  }

  const self: Memory = {
    async retrieve(query, { signal = new AbortController().signal, limit = topK } = {}) {
      const text = truncate(query.trim(), maxQueryChars)
      if (text === '' || documents.size === 0) return []
      await joinUpdate(signal)
      if (index === undefined) return []
      const known = index
      const vector = await runAbortable(signal, async (own) => embedder?.embedQuery(text, own.signal))
      const mode = vector === undefined ? 'text' : (embeddings?.mode ?? 'hybrid')
      const found = await known.search({ text, vector, mode, limit })
      const good = found.filter(({ score }) => score >= minScore)
      return fitSnippets(good, maxChars)
    },
    add(added) {
      for (const document of readDocuments(added).values())
        if (documents.get(document.source)?.text !== document.text) documents.set(document.source, document)
    },
    remove: (source) => documents.delete(source),
    get size() {
      return documents.size
    },
    tool: ({
      name = 'search_memory',
      description = 'Searches the indexed documents. Returns the passages that best match the query, with their sources.',
    } = {}) =>
      defineTool({
        name,
        description,
        input: z.object({
          query: z.string().min(1).describe('What to search for, in a few words or as a question'),
          limit: z
            .int()
            .min(1)
            .max(20)
            .optional()
            .describe(`The maximum number of passages. Defaults to ${topK}.`),
        }),
        readOnly: true,
        idempotent: true,
        async execute({ query, limit = topK }, { signal }) {
          const snippets = await self.retrieve(query, { signal, limit })
          return formatSnippets(snippets) || 'Nothing found. Try other words.'
        },
      }),
    toJSON() {
      const all = [...documents.values()]
      if (!embedder || !embeddings) return { version: 1, documents: all, embeddings: null }
      const known = [...embedder.retain(all.flatMap(divide))]
      const packed = Object.fromEntries(known.map(([key, vector]) => [key, packVector(vector)]))
      return { version: 1, documents: all, embeddings: { model: embeddings.model, vectors: packed } }
    },
  }
  return self
}

/** The best snippets that fit into `maxChars`. The first one that does not fit is truncated. */
function fitSnippets(snippets: readonly Required<RetrievedSnippet>[], maxChars: number): RetrievedSnippet[] {
  const fitting: RetrievedSnippet[] = []
  let left = maxChars
  for (const snippet of snippets) {
    if (left <= 0) break
    fitting.push({ ...snippet, text: truncate(snippet.text, left) })
    left -= snippet.text.length
  }
  return fitting
}

/** Work of which one instance runs for all callers. It stops when the last caller has given up. */
export function shareWork(work: (signal: AbortSignal) => Promise<void>): typeof work {
  let running: { done: Promise<void>; controller: AbortController; waiting: number } | undefined

  function start() {
    const controller = new AbortController()
    const done = work(controller.signal)
    // A caller that has given up ignores its failure.
    done.catch(() => {})
    return { done, controller, waiting: 0 }
  }

  return async (signal) => {
    signal.throwIfAborted()
    const joined = (running ??= start())
    joined.waiting += 1
    try {
      await runAbortable(signal, () => joined.done)
    } finally {
      joined.waiting -= 1
      if (joined.waiting === 0 && running === joined) {
        running = undefined
        joined.controller.abort()
      }
    }
  }
}

/** Options for dividing and searching documents. */
export interface SearchOptions {
  /** Maximum number of snippets per search. Defaults to 5. */
  topK?: number
  /**
   * Drops snippets below this score. A word search uses BM25, from 0 without an upper bound. `vector` uses the cosine,
   * up to 1. `hybrid` scores are 0 to 1, relative to the best snippet. By default, nothing is dropped.
   */
  minScore?: number
  /** Maximum number of characters in all snippets, of which the last one is truncated. Defaults to all. */
  maxChars?: number
  /** The length of a chunk in characters, from 50 to 10,000. Defaults to 1,500. */
  chunkChars?: number
  /** Number of characters shared with the previous chunk, below `chunkChars / 2`. Defaults to a tenth. */
  overlap?: number
  /** Adds a search by meaning. By default, only words are searched. */
  embeddings?: EmbeddingOptions
}

const clientKind = is.predicate<EmbeddingOptions['client']>(
  (value) => typeof (value as EmbeddingOptions['client'] | null)?.embeddings?.create === 'function',
  'an OpenAI client, such as new OpenAI()',
)

const searchOptionsKind = is.section({
  topK: is.count(1),
  minScore: is.number(-Infinity, Infinity, 'a number'),
  maxChars: is.count(1),
  chunkChars: is.wholeNumber(50, 10_000, 'a whole number from 50 to 10000'),
  overlap: is.count(0),
  embeddings: is.record({
    client: clientKind,
    model: is.nonEmptyText(),
    dimensions: is.optional(is.count(1)),
    batch: is.optional(is.count(1)),
    mode: is.optional(is.choice('hybrid', 'vector')),
    budgets: is.optional(is.anything),
    inputPerMillion: is.optional(is.amount('USD')),
  }),
})

function resolveSearchOptions(options: SearchOptions) {
  const checked = checkInput(searchOptionsKind, options, 'memory options')
  const { topK = 5, minScore = -Infinity, maxChars = Infinity, chunkChars = 1500 } = checked
  const { overlap = Math.floor(chunkChars / 10) } = checked
  const { embeddings } = options
  if (embeddings?.budgets !== undefined) checkBudgetList(embeddings.budgets, 'embeddings.budgets')
  if (overlap * 2 >= chunkChars) {
    throw invalidInputError('memory options', [
      { path: 'overlap', sentence: `overlap must be less than half of chunkChars (${chunkChars}).` },
    ])
  }
  return { topK, minScore, maxChars, chunkChars, overlap, embeddings }
}
