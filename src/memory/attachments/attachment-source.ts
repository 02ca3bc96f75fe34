import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { truncateLine } from '../../../guards/lib/cut.js'
import { decodePercent } from '../../core/base/text.js'
import { AttachmentError, type AttachmentErrorCode, type AttachmentLimits } from './attachment.js'
import { parseUrl, readUrl, tooLargeError, collectBytes } from './read-url.js'

export interface AttachmentContent {
  bytes: Uint8Array
  contentType?: string | undefined
}

export interface AttachmentSource {
  /** On one line, at most 200 characters. */
  name: string
  mimeType: string | undefined
  read(limits: AttachmentLimits, signal: AbortSignal): Promise<AttachmentContent>
}

/**
 * Creates the reader for an attachment.
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
  // A text has at least one byte per character.
  if (data.length > maxBytes) throw tooLargeError(name, maxBytes)
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  if (bytes.length > maxBytes) throw tooLargeError(name, maxBytes)
  return { bytes }
}

/** The last part of the path. The query is omitted, because it may be a secret. */
function getUrlName({ pathname, host }: URL): string {
  const last = pathname.split('/').findLast((part) => part !== '')
  return last === undefined ? host : decodePercent(last)
}

function invalidAttachmentError(name: string, message: string): AttachmentError {
  return new AttachmentError('invalid_attachment', name, message)
}

/** The path is resolved, so it must not be a link. Opening must not wait for the writer of a pipe. */
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** Reads a regular file inside `root`, at most `maxBytes`. */
async function readFile(path: string, name: string, limits: AttachmentLimits): Promise<Uint8Array> {
  try {
    const real = await locateFile(path, name, limits.root)
    // Checked before opening, because opening a device can have effects.
    const before = await lstat(real)
    if (!before.isFile()) throw notAFileError(name)
    const handle = await open(real, flags)
    try {
      return await readHandle(handle, before, name, limits.maxBytes)
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw toAttachmentError(error, name)
  }
}

async function readHandle(
  handle: FileHandle,
  before: { ino: number; dev: number },
  name: string,
  maxBytes: number,
): Promise<Uint8Array> {
  const stats = await handle.stat()
  // The file was replaced after it was located.
  if (!stats.isFile() || stats.ino !== before.ino || stats.dev !== before.dev) throw notAFileError(name)
  const refusal = () => tooLargeError(name, maxBytes)
  if (stats.size > maxBytes) throw refusal()
  // Bytes are counted as well, because some files report no size, and others grow.
  return await collectBytes(handle.createReadStream({ autoClose: false }), maxBytes, refusal)
}

async function locateFile(path: string, name: string, root: string | undefined): Promise<string> {
  if (root === undefined) return await realpath(path)
  const base = await realpath(root)
  const wanted = resolve(root, path)
  // Checks the path as written, so that errors reveal no files outside the folder.
  if (!isInside(resolve(root), wanted) && !isInside(base, wanted)) throw outsideRootError(name)
  const real = await realpath(wanted)
  if (!isInside(base, real)) throw outsideRootError(name)
  return real
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

function outsideRootError(name: string): AttachmentError {
  return new AttachmentError('outside_root', name, 'is outside of the folder that attachments are read from.')
}

function notAFileError(name: string): AttachmentError {
  return new AttachmentError(
    'not_a_file',
    name,
    'is not a regular file. Folders, devices and pipes are not read.',
  )
}

const failures: Record<string, [AttachmentErrorCode, string]> = {
  ENOENT: ['not_found', 'does not exist. Check the path.'],
  ENOTDIR: ['not_found', 'does not exist. Check the path.'],
  ENAMETOOLONG: ['not_found', 'does not exist: its path is too long.'],
  ELOOP: ['not_found', 'is a symbolic link that leads nowhere.'],
  EISDIR: ['not_a_file', 'is a folder.'],
  ENXIO: ['not_a_file', 'is not a regular file.'],
  EACCES: ['unreadable', 'may not be read by this process.'],
  EPERM: ['unreadable', 'may not be read by this process.'],
  ERR_INVALID_ARG_VALUE: ['invalid_attachment', 'has a path that no file can have.'],
}

function toAttachmentError(error: unknown, name: string): AttachmentError {
  if (error instanceof AttachmentError) return error
  const { code } = error as NodeJS.ErrnoException
  const [kind, message] = failures[code ?? ''] ?? ['unreadable', `cannot be read (${code ?? String(error)}).`]
  return new AttachmentError(kind, name, message, { cause: error })
}
