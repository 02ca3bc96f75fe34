import { maxTimerMs } from '../../core/base/clock.js'
import { describeError } from '../../core/base/errors.js'
import { capResponse } from './cap-response.js'
import { addHeaders, explainHttpError, isForServer } from './http-wire.js'
import type { McpAddress } from './mcp-options.js'
import { loadClientSdk } from './mcp-sdk.js'
import { createSignInFetch } from './sign-in/sign-in-fetch.js'
import type { SignIn } from './sign-in/sign-in.js'
import type { ServerWire, WireEvents } from './server-wire.js'

/** A server of the protocol's first revision: one stream of events has all that it says. */
export async function createSseWire(
  { url, headers, maxMessageBytes }: McpAddress & { maxMessageBytes: number },
  { onLost, onComplaint }: WireEvents,
  signIn?: SignIn,
): Promise<ServerWire> {
  const { SSEClientTransport } = await loadClientSdk()
  const address = new URL(url)

  const fetchForSignIn = signIn?.fetch ?? createSignInFetch(address)

  const ask = async (to: string | URL, given: RequestInit = {}): Promise<Response> => {
    if (!isForServer(address, to, given)) return fetchForSignIn(to, given)
    const init = { ...given, headers: addHeaders(given.headers, headers) }
    const response = await fetch(to, init).catch((error: unknown) => {
      onLost({ reason: `cannot be reached (${describeError(error)})`, transient: true })
      throw error
    })
    return capResponse(response, maxMessageBytes, {
      onExceeded: () => {
        const reason = `sent a message of more than ${maxMessageBytes} bytes and was cut off`
        onLost({ reason, transient: false })
      },
      // Its session is this very stream: to open another would be to begin anew.
      onEnd: () => {
        if (response.ok && init.method !== 'POST')
          onLost({ reason: 'has closed the connection', transient: true })
      },
    })
  }

  const transport = new SSEClientTransport(address, {
    ...(signIn && { authProvider: signIn.provider }),
    fetch: ask,
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has this only
  transport.onerror = onComplaint
  return {
    transport,
    place: `${address.origin}${address.pathname}`,
    hasHeaders: false,
    probeTimeoutMs: maxTimerMs,
    getLastOutput: () => '',
    explain: explainHttpError,
    shutDown: () => Promise.resolve(),
    kill: () => undefined,
  }
}
