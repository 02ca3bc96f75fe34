import { createServer, type Server, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createAnswer, type ProviderApi, planResponse, type PlannedResponse } from './planned-response.js'
import {
  RehearsalError,
  parseOptions,
  type RehearsalOptions,
  type RehearsalSettings,
  type Scenario,
  parseTurn,
} from './scenario.js'
import { type RecordedRequest, findUnmetExpectation, Refusal, readBody } from './chat-request.js'
import { createNap } from '../core/base/abort.js'
import { describeError } from '../core/base/errors.js'
import type { Clock } from '../core/base/clock.js'
import { chatApi } from './chat-api.js'
import { geminiApi, isGeminiPath } from './gemini-api.js'
import { findHistoryProblem, findStrictProblem } from './request-problem.js'
import { messagesApi } from './messages-api.js'
import { responsesApi } from './responses-api.js'
import type { Turn } from './turn-schema.js'

/** A running rehearsal. */
export interface Rehearsal {
  /** The base URL for clients, `http://127.0.0.1:PORT/v1`. */
  readonly url: string
  /** Valid requests for known models, in arrival order. */
  readonly requests: readonly RecordedRequest[]
  /** The number of turns that the default conversation has not played yet. Infinity if the scenario loops. */
  readonly remaining: number
  /**
   * Clears all requests and restarts every conversation.
   *
   * @example
   * const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Hello.' }] } })
   * rehearsal.reset() // all turns can be played again
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
 * @throws RehearsalError before the server listens, with the code `cannot_listen` if the port is taken
 */
export async function startRehearsal(scenario: Scenario | RehearsalOptions): Promise<Rehearsal> {
  const settings = parseOptions(scenario)
  const player = createPlayer(settings)
  const server = createServer((incoming, response) => void player.answerRequest(incoming, response))
  await listenOn(server, settings)
  const { port } = server.address() as AddressInfo
  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host
  let closed: Promise<void> | undefined
  return {
    url: `http://${host}:${port}/v1`,
    requests: player.requests,
    get remaining() {
      return player.getRemaining()
    },
    reset: player.reset,
    close: () => (closed ??= closeServer(server)),
  }
}

function listenOn(server: Server, { port, host }: RehearsalSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `Cannot listen on ${host}:${port}: ${cause.message}. Port 0 chooses a free port.`
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

const apis: Readonly<Record<string, ProviderApi>> = {
  '/v1/chat/completions': chatApi,
  '/v1/responses': responsesApi,
  '/v1/messages': messagesApi,
}

function findApi(path: string): ProviderApi | undefined {
  return isGeminiPath(path) ? geminiApi : apis[path]
}

function createPlayer({ scenarios, origins, clock, conversation, strict, strictHistory }: RehearsalSettings) {
  const requests: RecordedRequest[] = []
  /** The number of answered requests by scenario and conversation. */
  const played = new Map<string, number>()
  let completions = 0

  function getRemaining(): number {
    const { turns = [], onExhausted }: Partial<Scenario> = scenarios.get('') ?? {}
    const done = played.get(toPlaybackKey('', '')) ?? 0
    return onExhausted === 'loop' ? Infinity : Math.max(0, turns.length - done)
  }

  function reset(): void {
    requests.length = 0
    played.clear()
    completions = 0
  }

  async function answerRequest(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined)
    try {
      await route(incoming, response)
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy()
      const refusal =
        error instanceof Refusal ? error : new Refusal(400, 'rehearsal_failed', describeError(error))
      sendJson(response, refusal.status, (findApi(getPath(incoming)) ?? chatApi).formatRefusal(refusal))
    }
  }

  async function route(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET' } = incoming
    if (answerOrigin(incoming, response, origins)) return
    const path = getPath(incoming)
    const api = findApi(path)
    if (method === 'GET' && path === '/v1/models') return sendJson(response, 200, listModels())
    if (method === 'POST' && api !== undefined) return completeRequest(api, incoming, response)
    throw new Refusal(
      404,
      'unknown_url',
      `Unknown request URL: ${method} ${path}. Available: POST /v1/chat/completions, /v1/responses, /v1/messages and /v1beta/models/NAME:generateContent, and GET /v1/models.`,
    )
  }

  function listModels() {
    const ids = Array.from(scenarios.keys(), (name) => (name === '' ? 'rehearsal' : `rehearsal/${name}`))
    return {
      object: 'list',
      data: ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'rehearsal' })),
    }
  }

  async function completeRequest(api: ProviderApi, incoming: IncomingMessage, response: ServerResponse) {
    const sent = await readBody(incoming)
    const body = api.readRequest(sent, getPath(incoming))
    const { headers } = incoming
    const request: RecordedRequest = {
      body,
      api: api.name,
      sent,
      headers,
      at: clock.now(),
      conversation: conversation(body, headers),
      scenario: findScenarioName(body.model),
      turn: null,
      refused: null,
      aborted: false,
    }
    requests.push(request)
    let isCut = false
    response.on('close', () => {
      request.aborted = !isCut && !response.writableFinished
    })
    try {
      const cue = takeCue(request, api)
      request.turn = cue.index
      const id = `${api.idPrefix}${++completions}`
      const turn = await resolveTurn(cue, request)
      const created = Math.floor(request.at / 1000)
      const envelope = { id, created, model: body.model, callPrefix: `call_${cue.play}_` }
      const planned = planResponse(turn, createAnswer(turn, body, envelope), api)
      isCut = planned.ending === 'cut'
      await sendResponse(response, planned, turn, clock)
    } catch (error) {
      request.refused = describeError(error)
      throw error
    }
  }

  function takeCue({ body, sent, conversation, scenario }: RecordedRequest, api: ProviderApi): Cue {
    const refuse = (message: string, param: string): never => {
      throw new Refusal(400, 'rehearsal_invalid_history', message, param)
    }
    const [own] = strict ? api.listProblems(sent, body) : []
    const found = strict ? (own ?? findStrictProblem(body, api.limits)) : null
    if (found !== null) refuse(found.message, found.param)
    const problem = strictHistory ? findHistoryProblem(body.messages) : null
    if (problem !== null) refuse(problem, 'messages')
    return takeNext(scenario, conversation)
  }

  /** `rehearsal/NAME` plays NAME. Every other model plays the default scenario. */
  function findScenarioName(model: string): string {
    const name = model.startsWith('rehearsal/') ? model.slice('rehearsal/'.length) : ''
    if (scenarios.has(name)) return name
    const known = listModels().data.map(({ id }) => id)
    const message = `The model '${model}' does not exist. Available: ${known.join(', ')}.`
    throw new Refusal(404, 'model_not_found', message, 'model')
  }

  /** @throws Refusal if no turn is left */
  function takeNext(scenario: string, conversation: string): Cue {
    const { name, turns, onExhausted }: Scenario = scenarios.get(scenario) ?? { turns: [] }
    const key = toPlaybackKey(scenario, conversation)
    const before = played.get(key) ?? 0
    const { length } = turns
    const last = onExhausted === 'repeatLast' ? length - 1 : Infinity
    const index = onExhausted === 'loop' ? before % length : Math.min(before, last)
    const turn = turns[index]
    if (turn === undefined) {
      const called = name === undefined ? 'the scenario' : `the scenario '${name}'`
      throw new Refusal(
        400,
        'rehearsal_exhausted',
        `${length === 1 ? `The only turn of ${called} has` : `All ${length} turns of ${called} have`} been played. Add a turn, or set onExhausted to 'repeatLast' or 'loop'.`,
      )
    }
    played.set(key, before + 1)
    return { turn, index, play: before + 1 }
  }

  return { requests, getRemaining, reset, answerRequest }
}

const toPlaybackKey = (scenario: string, conversation: string): string =>
  JSON.stringify([scenario, conversation])

interface Cue {
  turn: Scenario['turns'][number]
  index: number
  /** Number of answered requests in the conversation, including this one. */
  play: number
}

async function resolveTurn({ turn: cued, index }: Cue, request: RecordedRequest): Promise<Turn> {
  const refuse = (code: string, what: string): never => {
    throw new Refusal(400, code, `turns[${index}] ${what}`)
  }
  let turn: Turn
  try {
    turn = typeof cued === 'function' ? parseTurn(await cued(request)) : cued
  } catch (error) {
    return refuse('rehearsal_turn_failed', `failed: ${describeError(error)}`)
  }
  const unmet = turn.expect && findUnmetExpectation(turn.expect, request.body)
  return unmet ? refuse('rehearsal_unexpected_request', `${unmet}.`) : turn
}

function getPath({ url = '/' }: IncomingMessage): string {
  return url.split('?')[0] ?? '/'
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

/**
 * Allows pages on this machine and pages listed in `origins`. Other pages are rejected so that an open page
 * cannot consume turns. Returns true for a preflight request, which has been answered.
 * @throws Refusal 403 `rehearsal_origin`
 */
function answerOrigin(
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  allowed: readonly string[],
): boolean {
  const { origin } = headers
  // Requests that do not come from a page have no origin.
  if (origin === undefined) return false
  if (!allowed.includes('*') && !allowed.includes(origin) && !isLocalOrigin(origin)) {
    throw new Refusal(
      403,
      'rehearsal_origin',
      `Pages from ${origin} may not send requests to this rehearsal. Allow them with the option origins: ['${origin}'].`,
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

/** Sends a planned response. Resolves when it is sent or the client has disconnected. */
async function sendResponse(
  response: ServerResponse,
  { status, headers, writes, ending }: PlannedResponse,
  { delayMs = 0, chunkDelayMs = 0 }: Turn,
  clock: Clock,
): Promise<void> {
  if (ending === 'silence') return
  await waitForClock(response, delayMs, clock)
  if (response.destroyed) return
  response.writeHead(status, headers)
  response.flushHeaders()
  for (const [i, bytes] of writes.entries()) {
    if (i > 0) await waitForClock(response, chunkDelayMs, clock)
    if (response.destroyed) return
    await writeBytes(response, bytes)
  }
  if (ending === 'end') response.end()
  if (ending === 'cut') response.destroy()
}

async function waitForClock(response: ServerResponse, ms: number, clock: Clock): Promise<void> {
  if (ms <= 0 || response.destroyed) return
  const nap = createNap(clock)
  response.once('close', nap.wake)
  await nap.sleep(ms)
  response.off('close', nap.wake)
}

/** Waits until an in-process client could read the bytes, or it would see two writes as one. */
async function writeBytes(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve) => {
    response.write(bytes, () => resolve())
  })
  await nextTurn()
}
