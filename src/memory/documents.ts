import { MemoryError } from '../core/memory/retriever.js'

/** What a memory is made of. A loaded attachment is one. */
export interface MemoryDocument {
  /** What the document is known by: adding another text under the same source replaces it. */
  source?: string
  /** Used as the source when there is none. */
  name?: string
  /** All of it; it is divided when it is indexed. */
  text: string
}

export interface StoredDocument {
  readonly source: string
  readonly text: string
}

/**
 * The documents of one call, each once.
 * @throws {MemoryError} `invalid_document`, `duplicate_source`
 */
export function readDocuments(documents: unknown): Map<string, StoredDocument> {
  if (!Array.isArray(documents)) {
    throw new MemoryError('invalid_document', 'documents must be a list of { source, text }.', 'documents')
  }
  const read = new Map<string, StoredDocument>()
  documents.forEach((document: unknown, index) => {
    const { source, text } = readDocument(document, `documents[${index}]`)
    const other = read.get(source)
    if (other !== undefined && other.text !== text) {
      throw new MemoryError(
        'duplicate_source',
        `Two different documents have the source '${source.slice(0, 200)}'. Give each a source of its own.`,
        `documents[${index}].source`,
      )
    }
    read.set(source, { source, text })
  })
  return read
}

function readDocument(document: unknown, path: string): StoredDocument {
  const { source, name, text } = (document ?? {}) as Record<string, unknown>
  const known = source ?? name
  if (typeof known !== 'string' || known.trim() === '') {
    throw new MemoryError('invalid_document', `${path} needs a source (or a name) that is a text.`, path)
  }
  if (typeof text !== 'string') {
    throw new MemoryError('invalid_document', `${path} needs a text.`, `${path}.text`)
  }
  return { source: known, text }
}
