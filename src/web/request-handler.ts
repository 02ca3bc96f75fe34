import { configError, StatewrightError, UsageError } from '../core/base/errors.js'
import { expectArgument } from '../core/base/values.js'
import { hintFor } from '../core/config/other-names.js'
import type { ContextCarrier } from '../core/tools/tool.js'
import { type Authorize, authorizeRequest, toSessionId } from './authorize.js'
import { type Chat, createChat } from './chat-service.js'
import { getChatHost } from './chat-sessions.js'
import { invalidInputError, type OnError, reportError, toErrorResponse } from './error-response.js'
import { checkExpose, type ExposeOptions, isFailureMasked } from './exposure.js'
import type { Caller, ChatAgent, WhenBusy } from './subscription.js'
import { createPageFiles, type PageFileOptions, type PageFiles } from './page-files.js'
import { branchNumber, object, optional, shortText } from './request-fields.js'
import { type HandlerHooks, hookNames, createRunHooks } from './run-hooks.js'

export interface HandlerOptions<Context = unknown> extends PageFileOptions, HandlerHooks {
  /** The agent that answers. It needs a store, because pages show its log. */
  agent: ChatAgent & ContextCarrier<Context>
  /** Decides which sessions a request may access. Required. `'none'` allows every request to access all sessions. */
  authorize: Authorize<NoInfer<Context>>
  path?: string
  /** Maximum size of a request body, in bytes. Defaults to 10,000,000. */
  maxBodyBytes?: number
  /** What pages may see of errors, retries, usage and models. Only error codes by default. */
  expose?: ExposeOptions
  /**
   * How to handle a message while the previous answer is in progress.
   *
   * - `'queue'`: the message waits and is answered next
   * - `'steer'`: the active run reads the text of the message at the next safe point, but messages with files are
   *   queued
   * - `'refuse'`: the request fails with 409 `run_in_progress`
   *
   * A store without an inbox and an interactive agent always refuse. Defaults to `'queue'`.
   */
  whenBusy?: WhenBusy
  /** Receives each error that pages do not see in full. Defaults to a process warning. */
  onError?: OnError
}

export interface PostRequest {
  body: Record<string, unknown>
  openChat: (chatId: unknown) => Chat
  getFiles: (chatId: unknown) => PageFiles
}

interface HandlerAbout {
  /** The function that creates the handler, for error messages. */
  name: string
  path: string
  /** Options in addition to the options of every handler. */
  options?: readonly string[]
}

export interface ChatProtocol {
  answerPost(request: PostRequest): Promise<Response>
  /** Handles `GET :id`: the current state of the chat, or of one of its branches, as JSON. */
  readChat(chat: Chat, branch: number | undefined): Promise<unknown>
  /** Handles `GET :id/stream`: the answer in progress, or to the user message `of`. Null if there is none. */
  streamChat(chat: Chat, at: { chatId: string; of: string | undefined }): Promise<Response | null>
}

/**
 * Creates the HTTP handler for an agent: `POST path`, `GET path/:id`, `GET path/:id/stream`, `POST path/:id/stop`. A
 * failed request gets an error response. `findProtocol` may throw for a client that it does not know.
 *
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function createRequestHandler(
  options: HandlerOptions,
  about: HandlerAbout,
  findProtocol: (request: Request) => ChatProtocol,
): (request: Request) => Promise<Response> {
  const { agent, authorize, maxBodyBytes, onError } = checkOptions(options, about)
  const { path = about.path, whenBusy = 'queue' } = options
  const expose = checkExpose(options.expose, (error, { session, callId = null }) =>
    reportError(onError, error, { where: 'hook', session, runId: null, callId }),
  )
  const getPageFiles = createPageFiles(options)
  const host = getChatHost(agent)
  const report: Caller['report'] = (failure, { id: runId, sessionId: session }) => {
    const { where, error, callId } = failure
    if (isFailureMasked(expose, failure)) reportError(onError, error, { where, session, runId, callId })
  }

  return async (request) => {
    expectRequest(request)
    let [prefix, session]: [string, string | null] = ['', null]
    try {
      const protocol = findProtocol(request)
      const route = parseRoute(request, path)
      const grant = await authorizeRequest(authorize, request)
      prefix = grant.prefix
      const hooks = createRunHooks(options, grant, { clock: host.clock, onError })
      const caller: Caller = { ...grant, expose, whenBusy, report, hooks }
      if (request.method === 'POST') checkContentType(request)
      if (route.to === 'send')
        return await protocol.answerPost({
          body: await readJson(request, maxBodyBytes),
          openChat: (chatId) => createChat(host, toSessionId(grant, chatId), caller),
          getFiles: (chatId) => getPageFiles(grant, chatId),
        })
      const { chatId } = route
      session = toSessionId(grant, chatId)
      const chat = createChat(host, session, caller)
      const { searchParams } = new URL(request.url)
      if (route.to === 'read') {
        const branch = searchParams.get('branch') ?? undefined
        const number = /^\d{1,4}$/.test(branch ?? '') ? Number(branch) : branch
        const shown = await protocol.readChat(chat, optional(branchNumber)(number, 'branch'))
        return Response.json(shown, { headers: { 'cache-control': 'no-store' } })
      }
      if (route.to === 'stop') {
        await chat.cancelRun()
        return new Response(null, { status: 204 })
      }
      const of = optional(shortText)(searchParams.get('of') ?? undefined, 'of')
      return (await protocol.streamChat(chat, { chatId, of })) ?? new Response(null, { status: 204 })
    } catch (error) {
      return toErrorResponse(error, { prefix, session, expose, onError })
    }
  }
}

/** Rejects requests from Express or `node:http`. @throws {UsageError} `invalid_argument` */
export function expectRequest(request: unknown): void {
  expectArgument('handler(request)', request, {
    is: isRequest,
    phrase: 'a fetch Request',
    hint: 'To convert other requests, see docs/express.md or docs/node-http.md.',
  })
}

function isRequest(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { method, url, headers } = value as Partial<Record<keyof Request, unknown>>
  if (typeof method !== 'string' || typeof url !== 'string' || !URL.canParse(url)) return false
  return typeof (headers as Partial<Headers> | undefined)?.get === 'function'
}

const optionNames = [
  'agent',
  'authorize',
  'path',
  'maxBodyBytes',
  'expose',
  'whenBusy',
  'onError',
  'fileAddresses',
  'fileIds',
  ...hookNames,
] satisfies (keyof HandlerOptions)[]

function checkOptions(options: HandlerOptions, about: HandlerAbout): HandlerOptions {
  const { authorize, path = '/', maxBodyBytes = 1, whenBusy = 'queue' } = options ?? {}
  if (authorize !== 'none' && typeof authorize !== 'function')
    throw configError(
      "authorize is required: (request) => 'ann' returns the prefix of the sessions that the request may see; 'none' lets every request see all.",
      'authorize',
    )
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw configError(`path must be the mount path of the handler, such as '${about.path}'.`, 'path')
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw configError('maxBodyBytes must be a positive integer.', 'maxBodyBytes')
  if (!['queue', 'steer', 'refuse'].includes(whenBusy))
    throw configError("whenBusy must be 'queue', 'steer' or 'refuse'.", 'whenBusy')
  for (const hook of ['onError', ...hookNames] as const)
    if (options[hook] !== undefined && typeof options[hook] !== 'function')
      throw configError(`${hook} must be a function.`, hook)
  const known = [...optionNames, ...(about.options ?? [])]
  const strange = Object.keys(options).find((key) => !known.includes(key))
  if (strange !== undefined)
    throw configError(`${about.name} has no option '${strange}'. ${hintFor(strange, known)}`, strange)
  return options
}

export type Route = { to: 'send' } | { to: 'read' | 'stream' | 'stop'; chatId: string }

/** @throws {StatewrightError} `not_found`, `method_not_allowed` */
export function parseRoute({ method, url }: Pick<Request, 'method' | 'url'>, path: string): Route {
  const { pathname } = new URL(url)
  const base = path.replace(/\/+$/, '')
  if (pathname !== base && !pathname.startsWith(`${base}/`)) throw notFoundError(pathname)
  const [chatId = '', last, ...more] = pathname.slice(base.length).split('/').slice(1)
  if (more.length > 0) throw notFoundError(pathname)
  if (chatId === '' && last === undefined) return expectMethod(method, 'POST', { to: 'send' })
  const chat = { chatId: decodePart(chatId) }
  if (last === undefined || last === '') return expectMethod(method, 'GET', { to: 'read', ...chat })
  if (last === 'stream') return expectMethod(method, 'GET', { to: 'stream', ...chat })
  if (last === 'stop') return expectMethod(method, 'POST', { to: 'stop', ...chat })
  throw notFoundError(pathname)
}

function expectMethod(method: string, expected: string, route: Route): Route {
  if (method === expected) return route
  throw new StatewrightError('method_not_allowed', `This address only supports ${expected}.`, method)
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (cause) {
    throw new UsageError('invalid_session', 'The URL does not contain a valid chat id.', 'id', { cause })
  }
}

function notFoundError(pathname: string): StatewrightError {
  return new StatewrightError(
    'not_found',
    `There is nothing at ${JSON.stringify(pathname.slice(0, 200))}. Set the path option to the mount path of the handler.`,
    'path',
  )
}

const defaultMaxBodyBytes = 10_000_000

/**
 * Rejects requests that are not JSON, even if their body is not read. Pages from other origins can send forms and plain
 * text to any server, but JSON only if CORS allows it.
 * @throws {StatewrightError} `wrong_content_type`
 */
function checkContentType(request: Request): void {
  const type = request.headers.get('content-type') ?? ''
  if (/^application\/json\s*(;|$)/i.test(type)) return
  void request.body?.cancel().catch(() => undefined)
  const message = 'Send JSON: content-type: application/json.'
  throw new StatewrightError('wrong_content_type', message, 'content-type')
}

/** Stops reading once the body exceeds the limit. @throws {StatewrightError} `too_large`, `invalid_input` */
async function readJson(request: Request, maxBytes = defaultMaxBodyBytes): Promise<Record<string, unknown>> {
  const body = await readText(request, maxBytes)
  try {
    return object(JSON.parse(body), 'body')
  } catch (cause) {
    if (cause instanceof UsageError) throw cause
    throw invalidInputError('The body is not valid JSON.', 'body', { cause })
  }
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  if (Number(request.headers.get('content-length')) > maxBytes) {
    await request.body?.cancel().catch(() => undefined)
    throw tooLargeError(maxBytes)
  }
  const reader = request.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    bytes += read.value.byteLength
    if (bytes > maxBytes) {
      void reader?.cancel().catch(() => undefined)
      throw tooLargeError(maxBytes)
    }
    text += decoder.decode(read.value, { stream: true })
  }
  return text + decoder.decode()
}

function tooLargeError(maxBytes: number): StatewrightError {
  return new StatewrightError(
    'too_large',
    `A request may have at most ${maxBytes} bytes. Send only the last message, and send large files by URL.`,
    'maxBodyBytes',
  )
}
