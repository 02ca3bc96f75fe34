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
  /** Valid requests for known models, in arrival order. */
  readonly requests: readonly RecordedRequest[]
  /** Turns the default conversation has not played yet; Infinity if the scenario loops. */
  readonly remaining: number
  /**
   * Clears all requests and restarts every conversation.
   *
   * @example
   * const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Hello.' }] } })
   * rehearsal.reset() // every turn is to come again
   * await rehearsal.close()
   */
  reset(): void
  /**
   * Stops listening and closes all connections. Idempotent.
   *
   * @example
   * const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Hello.' }] } })
   * await rehearsal.close()
   */
  close(): Promise<void>
}

/**
 * Starts a loopback server that plays a scenario. Each request gets the next turn, encoded for the requested
 * API.
 *
 * Routes: `POST /v1/chat/completions` and `/v1/responses` (OpenAI), `POST /v1/messages` (Anthropic), `POST
 * /v1beta/models/NAME:generateContent` and `:streamGenerateContent` (Gemini), and `GET /v1/models`. If the
 * rehearsal rejects a request (no turns left, an unmet expectation, an invalid history), it responds with
 * status 400, which no client retries, and a `code` starting with `rehearsal_`. The reason is also in
 * `requests` as `refused`.
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
