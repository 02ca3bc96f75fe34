/** Memory and attachments: documents that can be searched, and files and URLs that become text. Node only. */
export { formatSnippets, type FormatSnippetsOptions } from '../core/memory/retrieved-text.js'
export { AttachmentError, type AttachmentErrorCode } from './attachments/attachment.js'
export type {
  Attachment,
  AttachmentOptions,
  DataAttachment,
  FileAttachment,
  LoadedAttachment,
  UrlAttachment,
} from './attachments/attachment.js'
export { loadAttachment } from './attachments/load-attachment.js'
export type { MemoryDocument } from './documents.js'
export type { EmbeddingOptions } from './embedder.js'
export { type Memory, type MemoryOptions, memory, restoreMemory } from './memory.js'
export { MemoryError, type MemoryErrorCode } from '../core/memory/retriever.js'
export type { SearchOptions } from './memory.js'
export type { RetrievedSnippet, Retriever } from '../core/memory/retriever.js'
export { parseSnippets } from '../core/memory/retriever.js'
export type { StoredMemory } from './documents.js'
