import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { pipeline } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { lookup } from 'node:dns'
import { StatewrightError } from '../../core/base/errors.js'
import { createPublicLookup, type ResolveHost } from '../../core/config/address-policy.js'
import { AttachmentError, type AttachmentLimits } from './attachment.js'

const maxRedirects = 5
const redirects = new Set([301, 302, 303, 307, 308])

export interface FetchedContent {
  bytes: Uint8Array
  contentType: string | undefined
}

/**
 * Reads a URL with a public address. Each address is checked when the socket connects, also after every redirect.
 * `fetch` and proxies of the environment cannot do this check, so they are not used.
 */
export async function readUrl(
  url: URL,
  name: string,
  limits: AttachmentLimits,
  signal: AbortSignal,
  resolve?: ResolveHost,
): Promise<FetchedContent> {
  try {
    let target = url
    for (let followed = 0; followed <= maxRedirects; followed += 1) {
      const response = await requestUrl(target, name, limits, signal, resolve)
      const next = findRedirect(response, target, name)
      if (next === undefined) return await readBody(response, name, limits.maxBytes)
      response.destroy()
      target = next
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

/**
 * @throws {AttachmentError} `invalid_url`
 */
export function parseUrl(url: string, name: string, base?: URL): URL {
  if (!URL.canParse(url, base)) throw new AttachmentError('invalid_url', name, 'has an invalid URL.')
  const parsed = new URL(url, base)
  if (!/^https?:$/.test(parsed.protocol)) {
    throw new AttachmentError(
      'invalid_url',
      name,
      `has a ${parsed.protocol} URL. Only http and https are loaded.`,
    )
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new AttachmentError('invalid_url', name, 'has a URL with a user or a password in it. Remove them.')
  }
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
      `leads to ${host}${address === host ? '' : ` (${address})`}, which is not public. Allow it with allowAddresses if it is meant to be.`,
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

function findRedirect(
  { statusCode = 0, headers }: IncomingMessage,
  from: URL,
  name: string,
): URL | undefined {
  if (!redirects.has(statusCode) || headers.location === undefined) return undefined
  return parseUrl(headers.location, name, from)
}

/** Some servers compress although they were asked not to. */
const decoders: Record<string, () => NodeJS.ReadWriteStream> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

async function readBody(response: IncomingMessage, name: string, maxBytes: number): Promise<FetchedContent> {
  try {
    const { statusCode = 0, headers } = response
    if (statusCode < 200 || statusCode > 299) {
      throw new AttachmentError('http_status', name, `cannot be loaded: the server answered ${statusCode}.`)
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
    throw new AttachmentError(
      'unreadable',
      name,
      `is sent in the encoding '${encoding.slice(0, 50)}', which is unknown.`,
    )
  }
  // Errors of both streams surface where the decoded bytes are read.
  return pipeline(response, decoder(), () => {}) as unknown as AsyncIterable<Uint8Array>
}

function getReason(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const { code, message } = first as { code?: unknown; message?: unknown }
  return String(code ?? message ?? first).slice(0, 200)
}

/** Reads a source, and stops as soon as there are more than `maxBytes`. */
export async function collectBytes(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

export function tooLargeError(name: string, maxBytes: number): AttachmentError {
  return new AttachmentError(
    'too_large',
    name,
    `is larger than ${maxBytes} bytes. Raise maxBytes if it is meant to be.`,
  )
}
