import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  RehearsalError,
  parseOptions,
  type RehearsalOptions,
  type RehearsalSettings,
  type Scenario,
} from './scenario.js'
import type { RecordedRequest } from './chat-request.js'
import { ScenarioPlayer } from './scenario-player.js'

/** A running rehearsal. */
export interface Rehearsal {
  /** The base URL for clients, `http://127.0.0.1:PORT/v1`. */
  readonly url: string
  /** Every well-formed request to a model that exists, in the order of arrival. */
  readonly requests: readonly RecordedRequest[]
  /** Turns of the default scenario that the default conversation has not played; Infinity when it loops. */
  readonly remaining: number
  /**
   * Forgets all requests; every conversation starts over.
   *
   * @example
   * const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Hello.' }] } })
   * rehearsal.reset() // every turn is to come again
   * await rehearsal.close()
   */
  reset(): void
  /**
   * Stops listening and destroys what is open, hanging answers too. May be called twice.
   *
   * @example
   * const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Hello.' }] } })
   * await rehearsal.close()
   */
  close(): Promise<void>
}

/**
 * Starts a server on loopback that plays a scenario: each request for an answer, streamed or not, is answered by the next
 * turn, in the words of the API that was asked.
 *
 * Routes: `POST /v1/chat/completions` (OpenAI), `POST /v1/messages` (Anthropic), `POST /v1beta/models/NAME:generateContent`
 * and `:streamGenerateContent` (Gemini), and `GET /v1/models`. A mistake that the rehearsal itself finds — turns used up,
 * an expectation not met, an invalid history — is answered 400, which no client retries, with a `code` that begins
 * with `rehearsal_`, and is kept in `requests` as `refused`.
 *
 * @example
 * const rehearsal = await startRehearsal({ turns: [{ status: 429, retryAfter: 1 }, { text: 'Hello.' }] })
 * const client = new OpenAI({ baseURL: rehearsal.url, apiKey: 'none' })
 * // …
 * await rehearsal.close()
 *
 * @throws RehearsalError before anything listens; `cannot_listen` when the port is taken
 */
export async function startRehearsal(scenario: Scenario | RehearsalOptions): Promise<Rehearsal> {
  const settings = parseOptions(scenario)
  const player = new ScenarioPlayer(settings)
  const server = createServer((incoming, response) => void player.answerRequest(incoming, response))
  await listenOn(server, settings)
  const { port } = server.address() as AddressInfo
  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host
  let closed: Promise<void> | undefined
  return {
    url: `http://${host}:${port}/v1`,
    requests: player.requests,
    get remaining() {
      return player.remaining
    },
    reset: () => player.reset(),
    close: () => (closed ??= closeServer(server)),
  }
}

function listenOn(server: Server, { port, host }: RehearsalSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `Cannot listen on ${host}:${port}: ${cause.message}. Port 0 takes a free one.`
      reject(new RehearsalError('cannot_listen', message, 'port', { cause }))
    })
    server.listen(port, host, resolve)
  })
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
