import { MemoryError } from '../core/memory/retriever.js'
import type { Vector } from './embedder.js'

/** A document for a memory. Loaded attachments can be used as documents. */
export interface MemoryDocument {
  /** Identifies the document. A new text with the same source replaces it. */
  source?: string
  /** Used as the source if `source` is missing. */
  name?: string
  /** The complete text. It is divided when it is indexed. */
  text: string
}

export interface StoredDocument {
  readonly source: string
  readonly text: string
}

/** @throws {MemoryError} `invalid_document`, `duplicate_source` */
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
        `Two different documents have the source '${source.slice(0, 200)}'. Give each a unique source.`,
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
    throw new MemoryError('invalid_document', `${path} needs a string as its source (or name).`, path)
  }
  if (typeof text !== 'string') {
    throw new MemoryError('invalid_document', `${path} needs a string as its text.`, `${path}.text`)
  }
  return { source: known, text }
}

/** A memory as JSON, with the embeddings of its documents. */
export interface StoredMemory {
  /** The version of the schema. Newer versions are refused. */
  version: 1
  documents: StoredDocument[]
  /** The vectors by the SHA-256 of their text, as base64 of 32-bit floats (little-endian). Null without embeddings. */
  embeddings: { model: string; vectors: Record<string, string> } | null
}

/** @throws {MemoryError} `invalid_stored_memory` */
export function readStoredMemory(json: unknown) {
  const { version, documents: stored, embeddings } = expectObject(json)
  if (version !== 1) {
    const newer = typeof version === 'number' && version > 1
    throw invalidMemoryError(
      newer
        ? `it has version ${version}; update Statewright`
        : 'it is not the return value of memory.toJSON()',
    )
  }
  const documents = readStoredDocuments(stored)
  const vectors = new Map<string, Vector>()
  if (embeddings === null || embeddings === undefined) return { documents, model: undefined, vectors }
  const { model, vectors: packed } = expectObject(embeddings)
  if (typeof model !== 'string') throw invalidMemoryError('embeddings.model must be a string')
  for (const [key, vector] of Object.entries(expectObject(packed))) vectors.set(key, unpackVector(vector))
  return { documents, model, vectors }
}

export function packVector(vector: Vector): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64')
}

function unpackVector(packed: unknown): Vector {
  const bytes = Buffer.from(typeof packed === 'string' ? packed : '', 'base64')
  if (bytes.length === 0 || bytes.length % 4 !== 0)
    throw invalidMemoryError('a vector is not base64-encoded 32-bit floats')
  const vector = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
  if (!vector.every(Number.isFinite)) throw invalidMemoryError('a vector contains non-finite numbers')
  return vector
}

function readStoredDocuments(documents: unknown): StoredDocument[] {
  try {
    return [...readDocuments(documents).values()]
  } catch (error) {
    throw invalidMemoryError('its documents cannot be read', { cause: error })
  }
}

function expectObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  throw invalidMemoryError('it is not the return value of memory.toJSON()')
}

function invalidMemoryError(why: string, options?: ErrorOptions): MemoryError {
  return new MemoryError(
    'invalid_stored_memory',
    `The memory cannot be restored: ${why}.`,
    undefined,
    options,
  )
}
