import { extname } from 'node:path'
import { AttachmentError } from './attachment-error.js'

/** How text is made of a type. */
export type TextKind = 'text' | 'json' | 'html' | 'pdf'

export interface MediaType {
  /** Without parameters, in lower case. */
  mimeType: string
  kind: TextKind
  /** The `charset` parameter. */
  charset: string | undefined
  /** Where it comes from: a name is believed less than a word that was said on purpose. */
  from: 'mimeType' | 'name' | 'Content-Type'
}

const extensions: Record<string, string> = {
  '.txt': 'text/plain',
  '.text': 'text/plain',
  '.log': 'text/plain',
  '.md': 'text/markdown',
  '.markdown': 'text/markdown',
  '.csv': 'text/csv',
  '.tsv': 'text/tab-separated-values',
  '.xml': 'text/xml',
  '.yaml': 'text/yaml',
  '.yml': 'text/yaml',
  '.html': 'text/html',
  '.htm': 'text/html',
  '.json': 'application/json',
  '.pdf': 'application/pdf',
}

const supportedTypes = 'plain text, Markdown, CSV, HTML, JSON and PDF'

/**
 * The type of an attachment: what was said, else what its name says, else what the server says.
 * @throws {AttachmentError} `unsupported_type`
 */
export function getMediaType(
  name: string,
  mimeType: string | undefined,
  contentType: string | undefined,
): MediaType {
  const byName = extensions[extname(name).toLowerCase()]
  const charset = findCharset(mimeType) ?? findCharset(contentType)
  const [claimed, from] =
    mimeType !== undefined
      ? ([mimeType, 'mimeType'] as const)
      : byName !== undefined
        ? ([byName, 'name'] as const)
        : ([contentType ?? '', 'Content-Type'] as const)
  const essence = claimed.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const kind = findTextKind(essence)
  if (kind !== undefined) return { mimeType: essence, kind, charset, from }
  throw new AttachmentError(
    'unsupported_type',
    name,
    essence === ''
      ? `has a type that is not known. Pass its mimeType; supported are ${supportedTypes}.`
      : `is ${essence.slice(0, 100)}, of which no text is made. Supported are ${supportedTypes}.`,
  )
}

function findTextKind(essence: string): TextKind | undefined {
  if (essence === 'application/pdf' || essence === 'application/x-pdf') return 'pdf'
  if (essence === 'text/html' || essence === 'application/xhtml+xml') return 'html'
  if (/^(application|text)\/([\w.-]+\+)?json$/.test(essence)) return 'json'
  if (/^text\/[\w.+-]+$/.test(essence) || /^application\/(xml|yaml|x-ndjson)$/.test(essence)) return 'text'
  return undefined
}

function findCharset(type: string | undefined): string | undefined {
  return /;\s*charset="?([^\s;"]+)/i.exec(type ?? '')?.[1]
}
