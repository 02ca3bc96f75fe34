import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from './refusal.js'

/**
 * Allows pages of this machine, and those of the option `origins`. Requests of other pages are refused, so that an open page
 * cannot use up turns.
 *
 * True when the request was a preflight, and is answered.
 * @throws Refusal 403 `rehearsal_origin`
 */
export function answerOrigin(
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  allowed: readonly string[],
): boolean {
  const { origin } = headers
  // Programs send none.
  if (origin === undefined) return false
  if (!allowed.includes('*') && !allowed.includes(origin) && !isLocalOrigin(origin)) {
    throw new Refusal(
      403,
      'rehearsal_origin',
      `Pages of ${origin} may not talk to this rehearsal. Allow them with the option origins: ['${origin}'].`,
    )
  }
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', '*')
  response.setHeader('vary', 'Origin')
  if (method !== 'OPTIONS') return false
  response.writeHead(204, {
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': headers['access-control-request-headers'] ?? '*',
    'access-control-max-age': '600',
  })
  response.end()
  return true
}

function isLocalOrigin(origin: string): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, hostname } = new URL(origin)
  return /^https?:$/.test(protocol) && /^(localhost|[\w-]+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
