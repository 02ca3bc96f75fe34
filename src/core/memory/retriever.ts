import type { RetrievedSnippet } from '../../../machines/agent/messages.js'
import { StatewrightError, configError } from '../base/errors.js'
import { describeArgument } from '../base/values.js'

export type { RetrievedSnippet } from '../../../machines/agent/messages.js'

/**
 * Finds text that is relevant to a query. `memory()` creates a retriever. To query a search service, implement your
 * own.
 * @example
 * const wiki: Retriever = {
 *   retrieve: async (query, { signal, limit = 5 }) => (await search(query, { signal })).slice(0, limit),
 * }
 */
export interface Retriever {
  /**
   * The most relevant snippets, best first. Empty if nothing matches.
   * @param options.signal stops the search, which rejects with the signal's reason
   * @param options.limit maximum number of snippets. Defaults to the limit of the retriever
   */
  retrieve(
    query: string,
    options: { signal: AbortSignal; limit?: number },
  ): Promise<readonly RetrievedSnippet[]>
}

/** Errors from a memory or a retriever. */
export type MemoryErrorCode =
  /** A document without a source or text. */
  | 'invalid_document'
  /** Two different texts with the same source in one call. */
  | 'duplicate_source'
  /** An invalid response from the embeddings endpoint. */
  | 'invalid_embeddings'
  /** JSON that `restoreMemory` cannot read. */
  | 'invalid_stored_memory'
  /** A retriever's result that is not a list of snippets. */
  | 'invalid_snippets'

/**
 * Invalid input or output of a memory or a retriever.
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

/** @throws {ConfigError} if the value is not a retriever, such as a promise for one */
export function checkMemory(memory: unknown): Retriever | undefined {
  if (memory === undefined) return undefined
  if (typeof (memory as Partial<Retriever> | null)?.retrieve === 'function') return memory as Retriever
  const hint = memory instanceof Promise ? ' It is a promise. Await it first.' : ''
  throw configError(
    `memory must have retrieve(query, { signal }), like memory({ documents }).${hint}`,
    'memory',
  )
}

/**
 * Validates a retriever's result and copies it to plain JSON. Only `source`, `text` and a finite `score` are copied,
 * because custom retrievers are not trusted.
 * @example
 * const snippets = parseSnippets([{ source: 'a.md', text: 'A.', score: 2, internal: 'left out' }])
 * @throws {MemoryError} `invalid_snippets`
 */
export function parseSnippets(found: unknown): RetrievedSnippet[] {
  if (!Array.isArray(found)) throw invalidSnippetsError('a list of { source, text }', found)
  return found.map((snippet: unknown, index) => {
    const { source, text, score } = (snippet ?? {}) as Record<string, unknown>
    if (typeof source !== 'string')
      throw invalidSnippetsError(`a string as the source of snippet ${index}`, source)
    if (typeof text !== 'string') throw invalidSnippetsError(`a string as the text of snippet ${index}`, text)
    return { source, text, ...(Number.isFinite(score) && { score: Number(score) }) }
  })
}

function invalidSnippetsError(wanted: string, got: unknown): MemoryError {
  const message = `The retriever must return ${wanted}; it returned ${describeArgument(got)}.`
  return new MemoryError('invalid_snippets', message)
}
