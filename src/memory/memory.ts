import { optionsRule, expectArgument } from '../core/base/values.js'
import * as z from 'zod'
import { truncate } from '../../guards/lib/cut.js'
import { defineTool } from '../core/tools/define-tool.js'
import type { Tool } from '../core/tools/tool.js'
import { formatSnippets } from '../core/memory/retrieved-text.js'
import {
  type MemoryDocument,
  readDocuments,
  type StoredDocument,
  readStoredMemory,
  type StoredMemory,
} from './documents.js'
import { DocumentLibrary, resolveSearchOptions, type SearchOptions } from './document-library.js'
import type { RetrievedSnippet, Retriever } from '../core/memory/retriever.js'

/**
 * The initial documents and the search options of a memory.
 *
 * @example
 * const options: MemoryOptions = { documents: [{ source: 'a.md', text: 'A.' }], topK: 3, maxChars: 4_000 }
 * const handbook = memory(options)
 */
export interface MemoryOptions extends SearchOptions {
  /** The initial documents; `add` adds more. May be loaded attachments. */
  documents?: readonly MemoryDocument[]
}

/** Documents that can be searched. The first search creates the index. */
export interface Memory extends Retriever {
  /**
   * Like the method of a retriever. Both options are optional.
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

/** Longer queries do not improve results, and embeddings refuse them. */
const maxQueryChars = 4000

/**
 * A memory with an index inside the process, without a service. Needs the package `@orama/orama`.
 *
 * ```ts
 * const handbook = memory({ documents: [{ source: 'leave.md', text: 'Everyone has 30 days of leave.' }] })
 * const agent = createAgent({ model, tools: [handbook.tool()] })
 * ```
 *
 * `retrieve` rejects with the error of the embeddings client after its last retry. The next call tries again.
 * @throws {ConfigError} for invalid options, {MemoryError} for unusable documents
 */
export function memory(memoryOptions: MemoryOptions = {}): Memory {
  expectArgument('memory(options)', memoryOptions, optionsRule)
  const { documents = [], ...options } = memoryOptions
  return createMemory(readDocuments(documents).values(), options)
}

/**
 * Restores a memory from `toJSON()`. Pass its options again, because they are not stored. Embeddings are reused if the
 * model and the chunks are the same.
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
  documents: Iterable<StoredDocument>,
  options: SearchOptions,
  vectors: ReadonlyMap<string, readonly number[]> = new Map(),
): Memory {
  const resolved = resolveSearchOptions(options)
  const { topK, minScore, maxChars } = resolved
  const library = new DocumentLibrary(resolved, documents, vectors)

  const self: Memory = {
    async retrieve(query, { signal = new AbortController().signal, limit = topK } = {}) {
      const text = truncate(query.trim(), maxQueryChars)
      if (text === '' || library.size === 0) return []
      const found = await library.search(text, limit, signal)
      return fitSnippets(
        found.filter(({ score }) => score >= minScore),
        maxChars,
      )
    },
    add(added) {
      for (const document of readDocuments(added).values()) library.put(document)
    },
    remove: (source) => library.delete(source),
    get size() {
      return library.size
    },
    tool: ({
      name = 'search_memory',
      description = 'Searches the documents that are known here. Returns the passages that fit the query best, with their sources.',
    } = {}) =>
      defineTool({
        name,
        description,
        input: z.object({
          query: z.string().min(1).describe('What to look for, in a few words or as a question'),
          limit: z.int().min(1).max(20).optional().describe(`Passages at most. Default ${topK}`),
        }),
        readOnly: true,
        idempotent: true,
        async execute({ query, limit = topK }, { signal }) {
          const snippets = await self.retrieve(query, { signal, limit })
          return formatSnippets(snippets) || 'Nothing was found. Try other words.'
        },
      }),
    toJSON: () => library.toJSON(),
  }
  return self
}

/** The best snippets that fit into `maxChars`. The first that does not fit is cut. */
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
