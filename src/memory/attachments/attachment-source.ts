import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { truncateLine } from '../../../guards/lib/words.js'
import { decodePercent } from '../../core/base/text.js'
import { AttachmentError, type AttachmentErrorCode, type AttachmentLimits } from './attachment.js'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { pipeline } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { lookup } from 'node:dns'
import { StatewrightError } from '../../core/base/errors.js'
import { createPublicLookup, type ResolveHost } from '../../core/config/address-policy.js'

interface AttachmentContent {
  bytes: Uint8Array
  contentType?: string | undefined
}

interface AttachmentSource {
  /** The name, as one line of at most 200 characters. */
  name: string
  mimeType: string | undefined
  read(limits: AttachmentLimits, signal: AbortSignal): Promise<AttachmentContent>
}

/** @throws {AttachmentError} `invalid_attachment`, `invalid_url` */
export function createSource(attachment: unknown): AttachmentSource {
  if (typeof attachment !== 'object' || attachment === null)
    throw invalidAttachmentError('The attachment', 'must be an object.')
  const { data, path, url, mimeType, name: fileName } = attachment as Record<string, unknown>
  if ([data, path, url].filter((value) => value !== undefined).length !== 1) {
    throw invalidAttachmentError('The attachment', 'must have exactly one of data, path and url.')
  }
  if (mimeType !== undefined && typeof mimeType !== 'string')
    throw invalidAttachmentError('The attachment', 'must have a string as its mimeType.')
  if (fileName !== undefined && (typeof fileName !== 'string' || fileName.trim() === '')) {
    throw invalidAttachmentError('The attachment', 'must have a non-empty string as its name.')
  }
  const named = (fallback: string) => truncateLine(fileName ?? fallback, 200)

  if (data !== undefined) {
    if (fileName === undefined)
      throw invalidAttachmentError('The attachment', 'must have a name if it has data.')
    if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
      throw invalidAttachmentError(named(''), 'must have a string or a Uint8Array as its data.')
    }
    return { name: named(''), mimeType, read: async ({ maxBytes }) => readData(data, named(''), maxBytes) }
  }
  if (path !== undefined) {
    if (typeof path !== 'string' || path === '')
      throw invalidAttachmentError('The attachment', 'must have a non-empty string as its path.')
    const name = named(path.split(/[\\/]/).findLast((part) => part !== '') ?? path)
    return { name, mimeType, read: async (limits) => ({ bytes: await readFile(path, name, limits) }) }
  }
  const parsed = parseUrl(String(url), named('The attachment'))
  const name = named(getUrlName(parsed))
  return { name, mimeType, read: async (limits, signal) => await readUrl(parsed, name, limits, signal) }
}

async function readData(data: string | Uint8Array, name: string, maxBytes: number) {
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

const outsideRootError = (name: string): AttachmentError =>
  new AttachmentError('outside_root', name, 'is outside the attachments folder.')

const notAFileError = (name: string): AttachmentError =>
  new AttachmentError('not_a_file', name, 'is not a regular file. Folders, devices and pipes are not read.')

const failures: Record<string, [AttachmentErrorCode, string]> = {
  ENOENT: ['not_found', 'does not exist. Check the path.'],
  ENOTDIR: ['not_found', 'does not exist. Check the path.'],
  ENAMETOOLONG: ['not_found', 'does not exist: its path is too long.'],
  ELOOP: ['not_found', 'is a broken symbolic link.'],
  EISDIR: ['not_a_file', 'is a folder.'],
  ENXIO: ['not_a_file', 'is not a regular file.'],
  EACCES: ['unreadable', 'cannot be read: permission denied.'],
  EPERM: ['unreadable', 'cannot be read: permission denied.'],
  ERR_INVALID_ARG_VALUE: ['invalid_attachment', 'has an invalid path.'],
}

function toAttachmentError(error: unknown, name: string): AttachmentError {
  if (error instanceof AttachmentError) return error
  const { code } = error as NodeJS.ErrnoException
  const [kind, message] = failures[code ?? ''] ?? ['unreadable', `cannot be read (${code ?? String(error)}).`]
  return new AttachmentError(kind, name, message, { cause: error })
}

const maxRedirects = 5
const redirects = new Set([301, 302, 303, 307, 308])

/**
 * Reads a URL with a public address. Each address is checked when the socket connects, and again after every redirect.
 * `fetch` and environment proxies cannot perform this check, so they are not used.
 */
export async function readUrl(
  url: URL,
  name: string,
  limits: AttachmentLimits,
  signal: AbortSignal,
  resolve?: ResolveHost,
): Promise<AttachmentContent> {
  try {
    let target = url
    for (let followed = 0; followed <= maxRedirects; followed += 1) {
      const response = await requestUrl(target, name, limits, signal, resolve)
      const { statusCode = 0, headers } = response
      if (!redirects.has(statusCode) || headers.location === undefined)
        return await readBody(response, name, limits.maxBytes)
      target = parseUrl(headers.location, name, target)
      response.destroy()
    }
    throw new AttachmentError('too_many_redirects', name, `redirects more than ${maxRedirects} times.`)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof StatewrightError) throw error
    throw new AttachmentError('unreachable', name, `cannot be loaded (${getReason(error)}). Check the URL.`, {
      cause: error,
    })
  }
}

function parseUrl(url: string, name: string, base?: URL): URL {
  const fail = (problem: string) => new AttachmentError('invalid_url', name, problem)
  if (!URL.canParse(url, base)) throw fail('has an invalid URL.')
  const parsed = new URL(url, base)
  if (!/^https?:$/.test(parsed.protocol))
    throw fail(`has a ${parsed.protocol} URL. Only http and https are loaded.`)
  if (parsed.username !== '' || parsed.password !== '')
    throw fail('has a URL with a user or a password in it. Remove them.')
  return parsed
}

async function requestUrl(
  url: URL,
  name: string,
  { addresses }: AttachmentLimits,
  signal: AbortSignal,
  resolve: ResolveHost = lookup,
): Promise<IncomingMessage> {
  const client = url.protocol === 'https:' ? https : http
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const refuse = (address: string) =>
    new AttachmentError(
      'blocked_address',
      name,
      `points to ${host}${address === host ? '' : ` (${address})`}, which is not public. To allow it, add it to allowAddresses.`,
    )
  // A host that is an address is never looked up.
  if (isIP(host) !== 0 && !addresses.allows(host, host)) throw refuse(host)
  return await new Promise((done, fail) => {
    client
      .get(url, {
        // The global agent may use a proxy or an open connection.
        agent: new client.Agent({ keepAlive: false }),
        lookup: createPublicLookup(addresses, refuse, resolve),
        signal,
        headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'statewright' },
      })
      .on('response', done)
      .on('error', fail)
  })
}

/** The decoders by content encoding. Some servers compress although they were asked not to. */
const decoders: Record<string, () => NodeJS.ReadWriteStream> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

async function readBody(response: IncomingMessage, name: string, maxBytes: number) {
  try {
    const { statusCode = 0, headers } = response
    if (statusCode < 200 || statusCode > 299) {
      throw new AttachmentError('http_status', name, `cannot be loaded: the server returned ${statusCode}.`)
    }
    const refusal = () => tooLargeError(name, maxBytes)
    if (Number(headers['content-length']) > maxBytes) throw refusal()
    const body = decodeBody(response, name)
    return { bytes: await collectBytes(body, maxBytes, refusal), contentType: headers['content-type'] }
  } finally {
    response.destroy()
  }
}

function decodeBody(response: IncomingMessage, name: string): AsyncIterable<Uint8Array> {
  const encoding = response.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return response
  const decoder = decoders[encoding]
  if (decoder === undefined) {
    throw new AttachmentError('unreadable', name, `uses the unknown encoding '${encoding.slice(0, 50)}'.`)
  }
  // Errors from both streams surface where the decoded bytes are read.
  return pipeline(response, decoder(), () => {}) as unknown as AsyncIterable<Uint8Array>
}

function getReason(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const { code, message } = first as { code?: unknown; message?: unknown }
  return String(code ?? message ?? first).slice(0, 200)
}

async function collectBytes(source: AsyncIterable<Uint8Array>, maxBytes: number, tooLarge: () => Error) {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

const tooLargeError = (name: string, maxBytes: number): AttachmentError =>
  new AttachmentError('too_large', name, `is larger than ${maxBytes} bytes. To allow it, raise maxBytes.`)
