import { createAddressPolicy } from '../../../core/config/address-policy.js'
import { capResponse } from '../cap-response.js'

/** Bytes of one answer: metadata, a registration, tokens. */
const maxAnswerBytes = 1024 * 1024

const maxRedirects = 5

const loopback = ['localhost', '127.0.0.1', '::1']

export type SignInFetch = (to: string | URL, init?: RequestInit) => Promise<Response>

/**
 * Requests to addresses that the server of `address` names for the sign-in. They may not lead into a private network,
 * unless the server is there itself. `onRefused` receives each refresh token that is refused.
 */
export function createSignInFetch(
  address: URL,
  onRefused: (refreshToken: string) => void = () => undefined,
): SignInFetch {
  const host = address.hostname.replace(/^\[(.*)\]$/, '$1')
  const isLocal = loopback.includes(host) || host.endsWith('.localhost')
  const policy = createAddressPolicy([host, ...(isLocal ? loopback : [])])
  /** Refreshes under way: an authorization server takes each refresh token once. */
  const refreshes = new Map<string, Promise<Response>>()

  const check = async (to: URL): Promise<void> => {
    const name = to.hostname.replace(/^\[(.*)\]$/, '$1')
    const isWeb = to.protocol === 'http:' || to.protocol === 'https:'
    const addresses = isWeb && policy.allowsHost(name) ? await findAddresses(name) : undefined
    if (addresses?.every((found) => policy.allows(found, name)) !== true)
      throw new Error(`The server names '${to.origin}' for the sign-in, which is no public address.`)
  }

  const request: SignInFetch = async (to, init = {}) => {
    let target = new URL(to)
    for (let hops = 0; ; hops += 1) {
      // oxlint-disable-next-line no-await-in-loop -- the next address is known only then
      await check(target)
      // oxlint-disable-next-line no-await-in-loop
      const response = await fetch(target, { ...init, redirect: 'manual' })
      const location = response.headers.get('location')
      const isGet = init.method === undefined || init.method === 'GET'
      if (
        response.status < 300 ||
        response.status >= 400 ||
        location === null ||
        !isGet ||
        hops === maxRedirects
      )
        return capResponse(response, maxAnswerBytes, { onExceeded: () => undefined, onEnd: () => undefined })
      target = new URL(location, target)
    }
  }

  return async (to, init) => {
    const token = init?.body instanceof URLSearchParams ? init.body.get('refresh_token') : null
    if (token === null) return request(to, init)
    const key = `${String(to)} ${token}`
    const work = refreshes.get(key) ?? request(to, init)
    refreshes.set(key, work)
    try {
      const response = await work
      if (response.status === 400 || response.status === 401) onRefused(token)
      return response.clone()
    } finally {
      refreshes.delete(key)
    }
  }
}

/** What a name leads to; the name itself where nothing can be looked up, as in workers. */
async function findAddresses(name: string): Promise<string[]> {
  const dns = globalThis.process?.getBuiltinModule?.('node:dns/promises')
  if (dns === undefined) return []
  const found = await dns.lookup(name, { all: true })
  return found.map(({ address }) => address)
}
