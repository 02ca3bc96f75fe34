import { truncateLine } from '../../../guards/lib/cut.js'
import { AttachmentError } from './attachment-error.js'
import type { Limits } from './options.js'
import { readFile } from './read-file.js'
import { parseUrl, readUrl } from './read-url.js'
import { tooLarge } from './collect.js'
import { unescaped } from '../../core/base/unescaped.js'

export interface Content {
  bytes: Uint8Array
  /** What the server said; undefined when there was none. */
  contentType?: string | undefined
}

/** An attachment that is checked and can be read. */
export interface Source {
  /** On one line, at most 200 characters. */
  name: string
  mimeType: string | undefined
  read(limits: Limits, signal: AbortSignal): Promise<Content>
}

/**
 * Where the content of an attachment comes from.
 * @throws {AttachmentError} `invalid_attachment`, `invalid_url`
 */
export function sourceOf(attachment: unknown): Source {
  if (typeof attachment !== 'object' || attachment === null)
    throw invalid('The attachment', 'must be an object.')
  const { data, path, url, mimeType, name: given } = attachment as Record<string, unknown>
  if ([data, path, url].filter((value) => value !== undefined).length !== 1) {
    throw invalid('The attachment', 'must have exactly one of data, path and url.')
  }
  if (mimeType !== undefined && typeof mimeType !== 'string')
    throw invalid('The attachment', 'must have a text as mimeType.')
  if (given !== undefined && (typeof given !== 'string' || given.trim() === '')) {
    throw invalid('The attachment', 'must have a text as name.')
  }
  const named = (fallback: string) => truncateLine(given ?? fallback, 200)

  if (data !== undefined) {
    if (given === undefined) throw invalid('The attachment', 'with data must have a name.')
    if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
      throw invalid(named(''), 'must have a text or a Uint8Array as data.')
    }
    return { name: named(''), mimeType, read: async ({ maxBytes }) => readData(data, named(''), maxBytes) }
  }
  if (path !== undefined) {
    if (typeof path !== 'string' || path === '') throw invalid('The attachment', 'must have a text as path.')
    const name = named(path.split(/[\\/]/).findLast((part) => part !== '') ?? path)
    return { name, mimeType, read: async (limits) => ({ bytes: await readFile(path, name, limits) }) }
  }
  const parsed = parseUrl(String(url), named('The attachment'))
  const name = named(nameOf(parsed))
  return { name, mimeType, read: async (limits, signal) => await readUrl(parsed, name, limits, signal) }
}

async function readData(data: string | Uint8Array, name: string, maxBytes: number): Promise<Content> {
  // A text of this many characters has at least as many bytes.
  if (data.length > maxBytes) throw tooLarge(name, maxBytes)
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  if (bytes.length > maxBytes) throw tooLarge(name, maxBytes)
  return { bytes }
}

/** The last part of the path; the query stays out, since it may be a secret. */
function nameOf({ pathname, host }: URL): string {
  const last = pathname.split('/').findLast((part) => part !== '')
  return last === undefined ? host : unescaped(last)
}

function invalid(name: string, message: string): AttachmentError {
  return new AttachmentError('invalid_attachment', name, message)
}
