import { ConfigError } from '../core/base/errors.js'
import { type Authorize, authorizeRequest, type AccessGrant, toSessionId } from './authorize.js'
import { type ChatAgent, getChatService } from './chat-service.js'
import { checkExpose, type ExposeOptions, isFailureMasked } from './exposure.js'
import { PageChatService, type PageRights } from './page-chat-service.js'
import { createPageFiles, type PageFileOptions, type PageFiles } from './page-files.js'
import { readJson, checkContentType } from './read-json.js'
import { type OnError, toErrorResponse, type FailedRequest, reportError } from './error-response.js'
import { parseRoute } from './parse-route.js'

/** The options of every handler. */
export interface HandlerOptions extends PageFileOptions {
  /** The agent that answers. It needs a store: pages are shown what the log has. */
  agent: ChatAgent
  /** Which sessions a request may see. There is no default; `'none'`: every request may see all sessions. */
  authorize: Authorize
  /** The path at which the handler is mounted. */
  path?: string
  /** The longest body of a request, in bytes. Default: 10,000,000. */
  maxBodyBytes?: number
  /** What a page may see of errors, retries, usage and models. Default: the codes of errors only. */
  expose?: ExposeOptions
  /** Receives each error that pages do not see in full. Default: a warning of the process. */
  onError?: OnError
}

/** A chat: its id on the page, and its session id. */
export interface Chat {
  chatId: string
  sessionId: string
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
  /** The default path. */
  path: string
  /** `POST`: the last message, or answers. */
  handlePost(chats: PageChatService, request: PostRequest): Promise<Response>
  /** `GET :id`: the current state of the chat. */
  readChat(chats: PageChatService, sessionId: string): Promise<Response>
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
  const { agent, authorize, path = protocol.path, maxBodyBytes, onError } = checkOptions(options, protocol)
  const expose = checkExpose(options.expose)
  const getPageFiles = createPageFiles(options)
  const service = getChatService(agent)
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
    const { prefix, context, mayContinue } = grant
    sender.prefix = prefix
    const chats = new PageChatService(service, { context, mayContinue, expose, report })
    if (request.method === 'POST') checkContentType(request)
    if (route.to === 'say') {
      const body = await readJson(request, maxBodyBytes)
      return protocol.handlePost(chats, { grant, body, getFiles: (chatId) => getPageFiles(grant, chatId) })
    }
    const sessionId = toSessionId(grant, route.chatId)
    sender.session = sessionId
    switch (route.to) {
      case 'read':
        return protocol.readChat(chats, sessionId)
      case 'stream':
        return (await protocol.streamChat(chats, { chatId: route.chatId, sessionId })) ?? noContentResponse()
      default:
        await chats.cancelRun(sessionId)
        return noContentResponse()
    }
  }

  return async (request) => {
    const sender = { prefix: '', session: null }
    try {
      return await answer(request, sender)
    } catch (error) {
      return toErrorResponse(error, { ...sender, expose, onError })
    }
  }
}

const noContentResponse = (): Response => new Response(null, { status: 204 })

function checkOptions(options: HandlerOptions, protocol: ChatProtocol): HandlerOptions {
  const { authorize, path = '/', maxBodyBytes = 1 } = options ?? {}
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
  return options
}
