import { type Clock, systemClock } from '../../../core/base/clock.js'
import { limitTime } from '../../../core/base/abort.js'
import { checkInput } from '../../../core/config/check-input.js'
import { optional, predicate, callable, count, record, wholeNumber } from '../../../core/config/kind.js'
import { readProperty } from '../../../core/base/json.js'
import { describeError, StatewrightError } from '../../../core/base/errors.js'
import type { McpAuth } from './auth-options.js'

/** How a program on the user's own machine sends the user to sign in. */
export interface LoopbackOptions {
  /** Shows the address, or opens it in a browser. */
  open: (url: string) => void
  /** The port of this machine to which the user comes back. Default 41415. */
  port?: number
  /** Milliseconds that the user has. Default 300 000. */
  timeoutMs?: number
  /** Default: the platform's. */
  clock?: Clock
}

const optionsKind = record({
  open: callable<LoopbackOptions['open']>(),
  port: optional(wholeNumber(1, 65_535, 'a port from 1 to 65535')),
  timeoutMs: optional(count(1)),
  clock: optional(
    predicate<Clock>((clock) => typeof readProperty(clock, 'setTimeout') === 'function', 'a clock'),
  ),
})

/**
 * For programs on the user's own machine: a server at 127.0.0.1 that lives as long as the sign-in receives the user who
 * comes back. Needs Node.
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
          const message = `The sign-in cannot listen on port ${port} of this machine: ${describeError(error)}.`
          reject(new StatewrightError('mcp_sign_in', message, 'port', { cause: error }))
        })
        server.on('request', (request, response) => {
          const came = new URL(request.url ?? '/', redirectUrl)
          // Any page of the browser can ask for this address: the state is what only the real one knows.
          const isOurs = came.pathname === '/callback' && came.searchParams.get('state') === state
          response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
          response.end(
            isOurs ? 'You can close this page.' : 'Nothing is here.',
            () => isOurs && resolve(came),
          )
        })
        server.listen(port, '127.0.0.1', () => {
          open(url.href)
        })
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
