import { checkInput, invalidInputError } from '../core/config/check-input.js'
import {
  anything,
  optional,
  predicate,
  amount,
  choice,
  count,
  number,
  record,
  section,
  nonEmptyText,
  wholeNumber,
} from '../core/config/kind.js'
import { checkBudgetList } from '../core/budgets/budgets-option.js'
import type { EmbeddingOptions } from './embedder.js'

/** How a memory divides its documents and searches them. */
export interface SearchOptions {
  /** Snippets that one search finds at most. Default 5. */
  topK?: number
  /**
   * Snippets below this score are left out. Text: BM25, from 0 and without an upper end. `vector`: the cosine, up to 1.
   * `hybrid`: 0 to 1, relative to the best. Default: none are left out.
   */
  minScore?: number
  /** Characters of all snippets of one search together; the last one that fits is cut. Default: as many as there are. */
  maxChars?: number
  /** Characters of the pieces that documents are divided into, 50 to 10 000. Default 1500. */
  chunkChars?: number
  /** Characters that a piece shares with the one before, less than half of `chunkChars`. Default: a tenth of it. */
  overlap?: number
  /** Finds by meaning, too. Without it, by words alone. */
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

/** @throws {ConfigError} for options that no memory can have */
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
