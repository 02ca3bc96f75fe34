import { truncateLine } from '../../../guards/lib/cut.js'
import { AttachmentError } from './attachment-error.js'
import type { AttachmentLimits } from './attachment-limits.js'
import { readFile } from './read-file.js'
import { parseUrl, readUrl } from './read-url.js'
import { tooLargeError } from './collect-bytes.js'
import { decodePercent } from '../../core/base/decode-percent.js'

export interface AttachmentContent {
  bytes: Uint8Array
  /** What the server said; undefined when there was none. */
  contentType?: string | undefined
}

/** An attachment that is checked and can be read. */
export interface AttachmentSource {
  /** On one line, at most 200 characters. */
  name: string
  mimeType: string | undefined
  read(limits: AttachmentLimits, signal: AbortSignal): Promise<AttachmentContent>
}

/**
 * Where the content of an attachment comes from.
 * @throws {AttachmentError} `invalid_attachment`, `invalid_url`
 */
export function createSource(attachment: unknown): AttachmentSource {
  if (typeof attachment !== 'object' || attachment === null)
    throw invalidAttachmentError('The attachment', 'must be an object.')
  const { data, path, url, mimeType, name: given } = attachment as Record<string, unknown>
  if ([data, path, url].filter((value) => value !== undefined).length !== 1) {
    throw invalidAttachmentError('The attachment', 'must have exactly one of data, path and url.')
  }
  if (mimeType !== undefined && typeof mimeType !== 'string')
    throw invalidAttachmentError('The attachment', 'must have a text as mimeType.')
  if (given !== undefined && (typeof given !== 'string' || given.trim() === '')) {
    throw invalidAttachmentError('The attachment', 'must have a text as name.')
  }
  const named = (fallback: string) => truncateLine(given ?? fallback, 200)

  if (data !== undefined) {
    if (given === undefined) throw invalidAttachmentError('The attachment', 'with data must have a name.')
    if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
      throw invalidAttachmentError(named(''), 'must have a text or a Uint8Array as data.')
    }
    return { name: named(''), mimeType, read: async ({ maxBytes }) => readData(data, named(''), maxBytes) }
  }
  if (path !== undefined) {
    if (typeof path !== 'string' || path === '')
      throw invalidAttachmentError('The attachment', 'must have a text as path.')
    const name = named(path.split(/[\\/]/).findLast((part) => part !== '') ?? path)
    return { name, mimeType, read: async (limits) => ({ bytes: await readFile(path, name, limits) }) }
  }
  const parsed = parseUrl(String(url), named('The attachment'))
  const name = named(getUrlName(parsed))
  return { name, mimeType, read: async (limits, signal) => await readUrl(parsed, name, limits, signal) }
}

async function readData(
  data: string | Uint8Array,
  name: string,
  maxBytes: number,
): Promise<AttachmentContent> {
  // A text of this many characters has at least as many bytes.
  if (data.length > maxBytes) throw tooLargeError(name, maxBytes)
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  if (bytes.length > maxBytes) throw tooLargeError(name, maxBytes)
  return { bytes }
}

/** The last part of the path; the query stays out, since it may be a secret. */
function getUrlName({ pathname, host }: URL): string {
  const last = pathname.split('/').findLast((part) => part !== '')
  return last === undefined ? host : decodePercent(last)
}

function invalidAttachmentError(name: string, message: string): AttachmentError {
  return new AttachmentError('invalid_attachment', name, message)
}
