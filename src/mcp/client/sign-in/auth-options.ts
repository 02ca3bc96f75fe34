import * as is from '../../../core/config/kind.js'
import { readProperty } from '../../../core/base/json.js'
import type { McpTokenStore } from './token-store.js'
import { type Clock, systemClock } from '../../../core/base/clock.js'
import { limitTime } from '../../../core/base/abort.js'
import { checkInput } from '../../../core/config/check-input.js'
import { describeError, StatewrightError } from '../../../core/base/errors.js'

/** The user's sign-in (OAuth 2.1). The client registers itself, uses PKCE, and requests tokens for this server only. */
export interface McpAuth {
  /** The URL to which the authorization server redirects the user. */
  redirectUrl: string | URL
  /**
   * Sends the user to this address. Resolves with the URL to which the user returned, or with undefined if the user
   * returns elsewhere, in which case the app calls `finishMcpSignIn`. The server cannot be used until then.
   */
  signIn: (url: URL) => string | URL | undefined | Promise<string | URL | undefined>
  /** Stores the tokens. Defaults to memory. */
  store?: McpTokenStore
  /** The client's name, which the user sees. Defaults to `Statewright`. */
  clientName?: string
  /** The id of a registered client. */
  clientId?: string
  /** The secret of a registered client. */
  clientSecret?: string
  /**
   * The https URL of the client's metadata document, for authorization servers that accept such a document instead of a
   * registration.
   */
  clientMetadataUrl?: string | URL
  /** The scopes to request if the server does not specify any. */
  scope?: string
}

const isUrl = (protocols: RegExp) => (url: unknown) =>
  (typeof url === 'string' || url instanceof URL) &&
  URL.canParse(String(url)) &&
  protocols.test(new URL(url).protocol)

export const authKind = is.record({
  redirectUrl: is.predicate<string | URL>(isUrl(/:$/), 'a URL'),
  signIn: is.callable<McpAuth['signIn']>(),
  store: is.optional(
    is.predicate<McpTokenStore>(
      (store) => ['get', 'set', 'delete'].every((name) => typeof readProperty(store, name) === 'function'),
      'an object with get, set and delete',
    ),
  ),
  clientName: is.optional(is.nonEmptyText()),
  clientId: is.optional(is.nonEmptyText()),
  clientSecret: is.optional(is.nonEmptyText()),
  clientMetadataUrl: is.optional(is.predicate<string | URL>(isUrl(/^https:$/), 'an https URL')),
  scope: is.optional(is.anyText()),
})

/** Sign-in options for a program on the user's machine. */
export interface LoopbackOptions {
  /** Displays the address, or opens it in a browser. */
  open: (url: string) => void
  /** The local port of the redirect. Defaults to 41415. */
  port?: number
  /** The time limit for the user in milliseconds. Defaults to 300,000. */
  timeoutMs?: number
  clock?: Clock
}

const optionsKind = is.record({
  open: is.callable<LoopbackOptions['open']>(),
  port: is.optional(is.wholeNumber(1, 65_535, 'a port from 1 to 65535')),
  timeoutMs: is.optional(is.count(1)),
  clock: is.optional(
    is.predicate<Clock>((clock) => typeof readProperty(clock, 'setTimeout') === 'function', 'a clock'),
  ),
})

/**
 * Creates sign-in options for a program on the user's machine. A server at 127.0.0.1 receives the redirect. The server
 * runs only during the sign-in. Needs Node.
 *
 * @example
 * const auth = { ...loopbackSignIn({ open: (url) => console.log(url) }), store: fileTokenStore('./tokens.json') }
 * @throws {ConfigError} `invalid_config`
 */
export function loopbackSignIn(options: LoopbackOptions): Pick<McpAuth, 'redirectUrl' | 'signIn'> {
  checkInput(optionsKind, options, 'options of loopbackSignIn')
  const { open, port = 41_415, timeoutMs = 300_000, clock = systemClock } = options
  const redirectUrl = `http://127.0.0.1:${port}/callback`
  return {
    redirectUrl,
    signIn: async (url) => {
      const { createServer } = process.getBuiltinModule('node:http')
      const state = url.searchParams.get('state')
      const server = createServer()
      const callback = new Promise<URL>((resolve, reject) => {
        server.on('error', (error) => {
          const message = `The sign-in cannot listen on port ${port} on this machine: ${describeError(error)}.`
          reject(new StatewrightError('mcp_sign_in', message, 'port', { cause: error }))
        })
        server.on('request', (request, response) => {
          const came = new URL(request.url ?? '/', redirectUrl)
          // Any page in the browser can request this address, but only the redirect knows the state.
          const isOurs = came.pathname === '/callback' && came.searchParams.get('state') === state
          response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
          const text = isOurs ? 'You can close this page.' : 'There is nothing here.'
          response.end(text, () => isOurs && resolve(came))
        })
        server.listen(port, '127.0.0.1', () => open(url.href))
      })
      const late = (): Error =>
        new StatewrightError('mcp_sign_in', `The user did not sign in within ${timeoutMs} ms.`, 'timeoutMs')
      try {
        return await limitTime({ ms: timeoutMs, clock, late }, callback)
      } finally {
        server.closeAllConnections()
        server.close()
      }
    },
  }
}
