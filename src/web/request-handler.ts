import { ConfigError } from '../core/base/errors.js'
import { type Authorize, authorizeRequest, type AccessGrant, toSessionId } from './authorize.js'
import { type ChatAgent, getChatService } from './chat-service.js'
import { checkExpose, type ExposeOptions, isFailureMasked } from './exposure.js'
import { PageChatService, type PageRights } from './page-chat-service.js'
import { createPageFiles, type PageFileOptions, type PageFiles } from './page-files.js'
import { readJson, checkContentType } from './read-json.js'
import { type OnError, toErrorResponse, type FailedRequest, reportError } from './error-response.js'
import { parseRoute } from './parse-route.js'

/** What every handler is told. */
export interface HandlerOptions extends PageFileOptions {
  /** Who answers. It has a store: what a page is shown comes from the log. */
  agent: ChatAgent
  /** Whose sessions a request may see. There is no default: `'none'` says that everybody may see all. */
  authorize: Authorize
  /** Where it is mounted, as the address of a request says it. */
  path?: string
  /** The longest body of a request, in bytes. Default: 10,000,000. */
  maxBodyBytes?: number
  /** What a page may see of errors, retries, usage and models. Default: codes of errors, and nothing of the others. */
  expose?: ExposeOptions
  /** Told each error that a page is not shown as it is, as it was thrown. Default: a warning of the process. */
  onError?: OnError
}

/** A chat by the id that its page has for it, and the session that it is. */
export interface Chat {
  chatId: string
  sessionId: string
}

/** The body of a `POST`, and by what right it was sent. */
export interface PostRequest {
  grant: AccessGrant
  body: Record<string, unknown>
  /** Checks the files that the chat with this id names. */
  getFiles: (chatId: unknown) => PageFiles
}

/** What is particular to a protocol. */
export interface ChatProtocol {
  /** Where it is mounted unless the options say otherwise. */
  path: string
  /** `POST`: the last message, or answers. */
  handlePost(chats: PageChatService, request: PostRequest): Promise<Response>
  /** `GET :id`: the chat as it stands. */
  readChat(chats: PageChatService, sessionId: string): Promise<Response>
  /** `GET :id/stream`: what there is to look at; null where there is nothing. */
  streamChat(chats: PageChatService, chat: Chat): Promise<Response | null>
}

/**
 * The sessions of an agent over HTTP: `POST path`, `GET path/:id`, `GET path/:id/stream`, `POST path/:id/stop`. What cannot be
 * done is answered with its error.
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
      "authorize must say whose sessions a request may see: (request) => 'ann', or 'none' where everybody may see all.",
      'authorize',
    )
  }
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw configError(`path must be where the handler is mounted, such as '${protocol.path}'.`, 'path')
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw configError('maxBodyBytes must be a whole number from 1.', 'maxBodyBytes')
  return options
}
