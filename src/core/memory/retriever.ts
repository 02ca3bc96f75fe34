import type { RetrievedSnippet } from '../../../machines/agent/messages.js'
import { ConfigError, StatewrightError } from '../base/errors.js'

export type { RetrievedSnippet } from '../../../machines/agent/messages.js'

/**
 * Finds text that may help with a query. `memory()` makes one; write one to ask a search service of your own.
 *
 * @example
 * const wiki: Retriever = {
 *   retrieve: async (query, { signal, limit = 5 }) => (await search(query, { signal })).slice(0, limit),
 * }
 */
export interface Retriever {
  /**
   * The best snippets, best first; none when nothing fits.
   * @param options.signal stops the search; it then rejects with the signal's reason
   * @param options.limit snippets at most. Default: the retriever's own
   */
  retrieve(
    query: string,
    options: { signal: AbortSignal; limit?: number },
  ): Promise<readonly RetrievedSnippet[]>
}

/** What cannot be used. */
export type MemoryErrorCode =
  /** A document without a source or a text. */
  | 'invalid_document'
  /** Two different texts under one source in one call. */
  | 'duplicate_source'
  /** An answer of the embeddings endpoint that cannot be used. */
  | 'invalid_embeddings'
  /** JSON that `restoreMemory` cannot read. */
  | 'invalid_stored_memory'
  /** An answer of a retriever that is no list of snippets. */
  | 'invalid_snippets'

/**
 * Something that a memory or a retriever was given, or gave, cannot be used.
 *
 * @example
 * try {
 *   memory({ documents: [{ source: 'a.md', text: 'A.' }, { source: 'a.md', text: 'B.' }] })
 * } catch (error) {
 *   if (error instanceof MemoryError) console.log(error.code, error.subject) // → duplicate_source …
 * }
 */
export class MemoryError extends StatewrightError {
  override readonly name = 'MemoryError'
  declare readonly code: MemoryErrorCode
}

/** @throws {ConfigError} for what is no retriever, a promise of one included */
export function checkMemory(memory: unknown): Retriever | undefined {
  if (memory === undefined) return undefined
  if (typeof (memory as Partial<Retriever> | null)?.retrieve === 'function') return memory as Retriever
  const hint = memory instanceof Promise ? ' It is a promise: await it first.' : ''
  throw new ConfigError(
    'invalid_config',
    `memory must have retrieve(query, { signal }), as memory({ documents }) has.${hint}`,
    'memory',
  )
}

/**
 * What a retriever gave, as plain JSON: only `source`, `text` and a finite `score` stay. Retrievers that users write
 * are believed no further than this.
 *
 * @example
 * const snippets = parseSnippets([{ source: 'a.md', text: 'A.', score: 2, internal: 'left out' }])
 * @throws {MemoryError} `invalid_snippets`
 */
export function parseSnippets(found: unknown): RetrievedSnippet[] {
  if (!Array.isArray(found)) throw invalidSnippetsError('a list of { source, text }', found)
  return found.map((snippet: unknown, index) => {
    const { source, text, score } = (snippet ?? {}) as Record<string, unknown>
    if (typeof source !== 'string') throw invalidSnippetsError(`a text as source of snippet ${index}`, source)
    if (typeof text !== 'string') throw invalidSnippetsError(`a text in snippet ${index}`, text)
    return { source, text, ...(Number.isFinite(score) && { score: Number(score) }) }
  })
}

function invalidSnippetsError(wanted: string, got: unknown): MemoryError {
  const shown = got === null ? 'null' : typeof got
  return new MemoryError('invalid_snippets', `The retriever must return ${wanted}; it returned ${shown}.`)
}
