import { MemoryError } from './memory-error.js'
import type { RetrievedSnippet } from './retriever.js'

/**
 * What a retriever gave, as plain JSON: only `source`, `text` and a finite `score` stay. Retrievers that users write
 * are believed no further than this.
 * @throws {MemoryError} `invalid_snippets`
 */
export function plainSnippets(found: unknown): RetrievedSnippet[] {
  if (!Array.isArray(found)) throw invalid('a list of { source, text }', found)
  return found.map((snippet: unknown, index) => {
    const { source, text, score } = (snippet ?? {}) as Record<string, unknown>
    if (typeof source !== 'string') throw invalid(`a text as source of snippet ${index}`, source)
    if (typeof text !== 'string') throw invalid(`a text in snippet ${index}`, text)
    return { source, text, ...(Number.isFinite(score) && { score: Number(score) }) }
  })
}

function invalid(wanted: string, got: unknown): MemoryError {
  const shown = got === null ? 'null' : typeof got
  return new MemoryError('invalid_snippets', `The retriever must return ${wanted}; it returned ${shown}.`)
}
