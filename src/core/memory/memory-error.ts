import { StatewrightError } from '../base/errors.js'

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

/** Something that a memory or a retriever was given, or gave, cannot be used. */
export class MemoryError extends StatewrightError {
  override readonly name = 'MemoryError'
  declare readonly code: MemoryErrorCode
}
