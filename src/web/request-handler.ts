import { internalsByAgent } from '../core/agent/agent-internals.js'
import { systemClock } from '../core/base/clock.js'
import { ConfigError, StatewrightError, UsageError } from '../core/base/errors.js'
import { expectArgument } from '../core/base/values.js'
import { hintFor } from '../core/config/other-names.js'
import { type Authorize, authorizeRequest, type AccessGrant, toSessionId } from './authorize.js'
import type { ContextCarrier } from '../core/tools/tool.js'
import type { ChatAgent } from './chat-agent.js'
import { getChatService } from './get-chat-service.js'
import { checkExpose, type ExposeOptions, isFailureMasked } from './exposure.js'
import { type HandlerHooks, hookNames, RunHooks } from './run-hooks.js'
import type { WhenBusy } from './message-queue.js'
import { PageChatService, type PageRights } from './page-chat-service.js'
import { createPageFiles, type PageFileOptions, type PageFiles } from './page-files.js'
import { type OnError, toErrorResponse, type FailedRequest, reportError } from './error-response.js'

/** The options of every handler. */
export interface HandlerOptions<Context = unknown> extends PageFileOptions, HandlerHooks {
  /** The agent that answers. It needs a store: pages are shown what the log has. */
  agent: ChatAgent & ContextCarrier<Context>
  /** Which sessions a request may see. There is no default; `'none'`: every request may see all sessions. */
  authorize: Authorize<NoInfer<Context>>
  /** The path at which the handler is mounted. */
  path?: string
  /** The longest body of a request, in bytes. Default: 10,000,000. */
  maxBodyBytes?: number
  /** What a page may see of errors, retries, usage and models. Default: the codes of errors only. */
  expose?: ExposeOptions
  /**
   * What becomes of a message while the previous answer is under way. `'queue'`: it waits, and is answered next; `'steer'`: the
   * run that works reads its text at the next safe point (files wait as with `'queue'`); `'refuse'`: 409 `run_in_progress`.
   * A store without an inbox and an interactive agent refuse it. Default: `'queue'`.
   */
  whenBusy?: WhenBusy
  /** Receives each error that pages do not see in full. Default: a warning of the process. */
  onError?: OnError
}

/** A chat: its id on the page, and its session id. */
export interface Chat {
  chatId: string
  sessionId: string
  /** The user message whose answer is streamed. Absent: the answer that is under way. */
  of?: string | undefined
}

/** The body of a `POST`, and what its sender may do. */
export interface PostRequest {
  grant: AccessGrant
  body: Record<string, unknown>
  /** The file check of the chat with this id. */
  getFiles: (chatId: unknown) => PageFiles
}

/** The part of a handler that depends on the page's protocol. */
export interface ChatProtocol {
  /** What creates the handler, for errors. */
  name: string
  /** The default path. */
  path: string
  /** Its options beside those of every handler. */
  options?: readonly string[]
  /** `POST`: the last message, or answers. */
  handlePost(chats: PageChatService, request: PostRequest): Promise<Response>
  /** `GET :id`: the current state of the chat. `branch`: of that branch. */
  readChat(chats: PageChatService, sessionId: string, branch: number | undefined): Promise<Response>
  /** `GET :id/stream`: the answer that is under way; null when there is none. */
  streamChat(chats: PageChatService, chat: Chat): Promise<Response | null>
}

/**
 * Creates the HTTP handler of an agent: `POST path`, `GET path/:id`, `GET path/:id/stream`, `POST path/:id/stop`. A failed
 * request gets an error response.
 *
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function createRequestHandler(
  options: HandlerOptions,
  protocol: ChatProtocol,
): (request: Request) => Promise<Response> {
  const {
    agent,
    authorize,
    path = protocol.path,
    maxBodyBytes,
    whenBusy = 'queue',
    onError,
  } = checkOptions(options, protocol)
  const expose = checkExpose(options.expose, (error, { session, callId = null }) =>
    reportError(onError, error, { where: 'hook', session, runId: null, callId }),
  )
  const getPageFiles = createPageFiles(options)
  const service = getChatService(agent)
  const clock = internalsByAgent.get(agent)?.parts.clock ?? systemClock
  const report: PageRights['report'] = (failure, { id: runId, sessionId: session }) => {
    const { where, error, callId } = failure
    if (isFailureMasked(expose, failure)) reportError(onError, error, { where, session, runId, callId })
  }

  async function answer(
    request: Request,
    sender: Pick<FailedRequest, 'prefix' | 'session'>,
  ): Promise<Response> {
    const route = parseRoute(request, path)
    const grant = await authorizeRequest(authorize, request)
    const { prefix, context, tags, mayContinue } = grant
    sender.prefix = prefix
    const hooks = new RunHooks(options, { principal: { prefix, context }, clock, onError })
    const chats = new PageChatService(service, {
      context,
      tags,
      mayContinue,
      expose,
      whenBusy,
      report,
      hooks,
    })
    if (request.method === 'POST') checkContentType(request)
    if (route.to === 'say') {
      const body = await readJson(request, maxBodyBytes)
      return protocol.handlePost(chats, { grant, body, getFiles: (chatId) => getPageFiles(grant, chatId) })
    }
    const sessionId = toSessionId(grant, route.chatId)
    sender.session = sessionId
    switch (route.to) {
      case 'read':
        return protocol.readChat(chats, sessionId, readBranchParameter(request))
      case 'stream':
        return (
          (await protocol.streamChat(chats, {
            chatId: route.chatId,
            sessionId,
            of: readMessageId(request),
          })) ?? noContentResponse()
        )
      default:
        await chats.cancelRun(sessionId)
        return noContentResponse()
    }
  }

  return async (request) => {
    expectRequest(request)
    const sender = { prefix: '', session: null }
    try {
      return await answer(request, sender)
    } catch (error) {
      return toErrorResponse(error, { ...sender, expose, onError })
    }
  }
}

/**
 * Refuses what is no `Request`, such as the request of Express or `node:http`.
 *
 * @throws {UsageError} `invalid_argument`
 */
export function expectRequest(request: unknown): void {
  expectArgument('handler(request)', request, {
    is: isRequest,
    phrase: 'a Request of fetch. docs/express.md and docs/node-http.md make one of the request of a server',
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

const noContentResponse = (): Response => new Response(null, { status: 204 })

function checkOptions(options: HandlerOptions, protocol: ChatProtocol): HandlerOptions {
  const { authorize, path = '/', maxBodyBytes = 1, whenBusy = 'queue' } = options ?? {}
  const configError = (message: string, key: string): ConfigError =>
    new ConfigError('invalid_config', message, key)
  if (authorize !== 'none' && typeof authorize !== 'function') {
    throw configError(
      "authorize must say which sessions a request may see: (request) => 'ann', or 'none' when every request may see all.",
      'authorize',
    )
  }
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw configError(`path must be where the handler is mounted, such as '${protocol.path}'.`, 'path')
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw configError('maxBodyBytes must be a whole number from 1.', 'maxBodyBytes')
  if (!['queue', 'steer', 'refuse'].includes(whenBusy))
    throw configError("whenBusy must be 'queue', 'steer' or 'refuse'.", 'whenBusy')
  for (const hook of ['onError', ...hookNames] as const)
    if (options[hook] !== undefined && typeof options[hook] !== 'function')
      throw configError(`${hook} must be a function.`, hook)
  const known = [...optionNames, ...(protocol.options ?? [])]
  const strange = Object.keys(options).find((key) => !known.includes(key))
  if (strange !== undefined)
    throw configError(`${protocol.name} has no option '${strange}'. ${hintFor(strange, known)}`, strange)
  return options
}

/** The branch that `?branch=` names. */
function readBranchParameter({ url }: Request): number | undefined {
  const given = new URL(url).searchParams.get('branch')
  return given === null ? undefined : readBranch(/^\d{1,4}$/.test(given) ? Number(given) : given)
}

/** The user message that `?of=` names. */
function readMessageId({ url }: Request): string | undefined {
  const id = new URL(url).searchParams.get('of') ?? undefined
  if (id === undefined || (id !== '' && id.length <= 200)) return id
  throw new UsageError('invalid_input', 'of must be the id of a message: 1 to 200 characters.', 'of')
}

/**
 * The branch that a page names; undefined: the one that the session is on.
 *
 * @throws {UsageError} `invalid_input`
 */
export function readBranch(given: unknown): number | undefined {
  if (given === undefined) return undefined
  if (typeof given === 'number' && Number.isSafeInteger(given) && given > 0) return given
  throw new UsageError('invalid_input', 'branch must be the number of a branch, from 1.', 'branch')
}

/** What a request asks for. */
export type Route = { to: 'say' } | { to: 'read' | 'stream' | 'stop'; chatId: string }

/**
 * `POST path`, `GET path/:id`, `GET path/:id/stream` and `POST path/:id/stop`.
 *
 * @throws {StatewrightError} `not_found`, `method_not_allowed`
 */
export function parseRoute({ method, url }: Pick<Request, 'method' | 'url'>, path: string): Route {
  const { pathname } = new URL(url)
  const base = path.replace(/\/+$/, '')
  if (pathname !== base && !pathname.startsWith(`${base}/`)) throw notFoundError(pathname)
  const [chatId = '', last, ...more] = pathname.slice(base.length).split('/').slice(1)
  if (more.length > 0) throw notFoundError(pathname)
  if (chatId === '' && last === undefined) return expectMethod(method, 'POST', { to: 'say' })
  const chat = { chatId: decodePart(chatId) }
  if (last === undefined || last === '') return expectMethod(method, 'GET', { to: 'read', ...chat })
  if (last === 'stream') return expectMethod(method, 'GET', { to: 'stream', ...chat })
  if (last === 'stop') return expectMethod(method, 'POST', { to: 'stop', ...chat })
  throw notFoundError(pathname)
}

function expectMethod(method: string, expected: string, route: Route): Route {
  if (method === expected) return route
  throw new StatewrightError('method_not_allowed', `Only ${expected} is answered here.`, method)
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (cause) {
    throw new UsageError('invalid_session', 'The address holds no id of a chat.', 'id', { cause })
  }
}

function notFoundError(pathname: string): StatewrightError {
  return new StatewrightError(
    'not_found',
    `There is nothing at ${JSON.stringify(pathname.slice(0, 200))}: say where the handler is mounted with its option path.`,
    'path',
  )
}

/** The default limit of a request body in bytes: enough for some pictures. */
const defaultMaxBodyBytes = 10_000_000

/**
 * Refuses requests that are not JSON, whether or not their body is read. A page of another origin can send forms and plain
 * text to any address, but JSON only when CORS allows it.
 *
 * @throws {StatewrightError} `wrong_content_type`
 */
function checkContentType(request: Request): void {
  const type = request.headers.get('content-type') ?? ''
  if (/^application\/json\s*(;|$)/i.test(type)) return
  void request.body?.cancel().catch(() => undefined)
  throw new StatewrightError(
    'wrong_content_type',
    'Send JSON: content-type: application/json.',
    'content-type',
  )
}

/**
 * Reads the JSON object in the body of a request. Reading stops when the body exceeds the limit.
 *
 * @throws {StatewrightError} `too_large`
 * @throws {UsageError} `invalid_input` when the body is not JSON or not an object
 */
async function readJson(
  request: Request,
  maxBytes: number = defaultMaxBodyBytes,
): Promise<Record<string, unknown>> {
  const body = parseJson(await readText(request, maxBytes))
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>
  throw new UsageError('invalid_input', 'The body must be an object in JSON.', 'body')
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new UsageError('invalid_input', 'The body is not JSON.', 'body', { cause })
  }
}

function tooLargeError(maxBytes: number): StatewrightError {
  return new StatewrightError(
    'too_large',
    `A request may have ${maxBytes} bytes: send the last message alone, and large files by their address.`,
    'maxBodyBytes',
  )
}
