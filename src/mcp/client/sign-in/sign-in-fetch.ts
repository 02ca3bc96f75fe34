import type { IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import {
  createAddressPolicy,
  createPublicLookup,
  type ResolveHost,
} from '../../../core/config/address-policy.js'
import { timeoutError } from '../../../core/base/abort.js'
import { systemClock, unrefTimer } from '../../../core/base/clock.js'
import { capResponse } from '../cap-response.js'

/** Limit for metadata, a registration, or tokens. */
const maxAnswerBytes = 1024 * 1024

const maxRedirects = 5

/** Maximum milliseconds for an answer, including its redirects. */
const defaultAnswerMs = 30_000

const loopback = ['localhost', '127.0.0.1', '::1']

export type SignInFetch = (to: string | URL, init?: RequestInit) => Promise<Response>

/** Addresses for the sign-in must not be in a private network, unless the server at `address` is in one. */
export function createSignInFetch(
  address: URL,
  { resolve, answerMs = defaultAnswerMs }: { resolve?: ResolveHost; answerMs?: number } = {},
): SignInFetch {
  const host = address.hostname.replace(/^\[(.*)\]$/, '$1')
  const isLocal = loopback.includes(host) || host.endsWith('.localhost')
  const policy = createAddressPolicy([host, ...(isLocal ? loopback : [])])
  const load = async (to: URL, init: RequestInit): Promise<Response> => {
    const refuse = (): Error =>
      new Error(`The server names '${to.origin}' for the sign-in, which is not a public address.`)
    const name = to.hostname.replace(/^\[(.*)\]$/, '$1')
    if (!/^https?:$/.test(to.protocol) || !policy.allowsHost(name)) throw refuse()
    const dns = globalThis.process?.getBuiltinModule?.('node:dns')
    // Workers resolve names themselves and have no private network.
    if (dns === undefined) return fetch(to, init)
    return fetchByNode(to, init, createPublicLookup(policy, refuse, resolve ?? dns.lookup))
  }

  return async (to, init = {}) => {
    const limit = new AbortController()
    unrefTimer(systemClock.setTimeout(() => limit.abort(timeoutError('The sign-in', answerMs)), answerMs))
    const signal = init.signal ? AbortSignal.any([init.signal, limit.signal]) : limit.signal
    let target = new URL(to)
    for (let hops = 0; ; hops += 1) {
      // The next address is known only then.
      const response = await load(target, { ...init, redirect: 'manual', signal })
      const location = response.headers.get('location')
      const isRedirect = response.status >= 300 && response.status < 400 && location !== null
      const isGet = init.method === undefined || init.method === 'GET'
      if (!isRedirect || !isGet || hops === maxRedirects) return capResponse(response, maxAnswerBytes)
      target = new URL(location, target)
    }
  }
}

/** Connects only to addresses that `lookup` allows. */
async function fetchByNode(to: URL, init: RequestInit, lookup: LookupFunction): Promise<Response> {
  const { request: send, Agent } = process.getBuiltinModule(
    to.protocol === 'https:' ? 'node:https' : 'node:http',
  )
  const { Readable } = process.getBuiltinModule('node:stream')
  const request = new Request(to, init)
  const body = new Uint8Array(await request.arrayBuffer())
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    send(to, {
      method: request.method,
      headers: { ...Object.fromEntries(request.headers), 'accept-encoding': 'identity' },
      // The global agent may use a proxy or an open connection.
      agent: new Agent({ keepAlive: false }),
      lookup,
      signal: request.signal,
    })
      .on('response', resolve)
      .on('error', (error) => reject(request.signal.aborted ? (request.signal.reason as Error) : error))
      .end(body)
  })
  const { statusCode: status = 0, headers } = incoming
  const text = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)])
  const hasBody = ![204, 205, 304].includes(status)
  const stream = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null
  return new Response(stream, { status, headers: text })
}
