import { ConfigError } from '../core/base/errors.js'
import { type Authorize, granted, type Granted, sessionIdOf } from './authorize.js'
import { type ChatAgent, chatsOf } from './chats.js'
import { checkExpose, type ExposeOptions, isHidden } from './exposure.js'
import { PageChats, type PageRights } from './page-chats.js'
import { createPageFiles, type PageFileOptions, type PageFiles } from './page-files.js'
import { readJson, refuseForms } from './read-json.js'
import { type OnError, refused, type RefusedRequest, reportError } from './refused.js'
import { routed } from './routed.js'

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
export interface SentRequest {
  grant: Granted
  body: Record<string, unknown>
  /** Checks the files that the chat with this id names. */
  filesOf: (chatId: unknown) => PageFiles
}

/** What is particular to a protocol. */
export interface ServedProtocol {
  /** Where it is mounted unless the options say otherwise. */
  path: string
  /** `POST`: the last message, or answers. */
  say(chats: PageChats, request: SentRequest): Promise<Response>
  /** `GET :id`: the chat as it stands. */
  read(chats: PageChats, sessionId: string): Promise<Response>
  /** `GET :id/stream`: what there is to look at; null where there is nothing. */
  stream(chats: PageChats, chat: Chat): Promise<Response | null>
}

/**
 * The sessions of an agent over HTTP: `POST path`, `GET path/:id`, `GET path/:id/stream`, `POST path/:id/stop`. What cannot be
 * done is answered with its error.
 *
 * @throws {ConfigError} `invalid_config` for an agent without a store, and without `authorize`
 */
export function served(
  options: HandlerOptions,
  protocol: ServedProtocol,
): (request: Request) => Promise<Response> {
  const { agent, authorize, path = protocol.path, maxBodyBytes, onError } = checked(options, protocol)
  const expose = checkExpose(options.expose)
  const pageFiles = createPageFiles(options)
  const all = chatsOf(agent)
  const report: PageRights['report'] = (failure, { id: runId, sessionId: session }) => {
    const { where, error, callId } = failure
    if (isHidden(expose, failure)) reportError(onError, error, { where, session, runId, callId })
  }

  async function answer(
    request: Request,
    from: Pick<RefusedRequest, 'prefix' | 'session'>,
  ): Promise<Response> {
    const route = routed(request, path)
    const grant = await granted(authorize, request)
    const { prefix, context, mayContinue } = grant
    from.prefix = prefix
    const chats = new PageChats(all, { context, mayContinue, expose, report })
    if (request.method === 'POST') refuseForms(request)
    if (route.to === 'say') {
      const body = await readJson(request, maxBodyBytes)
      return protocol.say(chats, { grant, body, filesOf: (chatId) => pageFiles(grant, chatId) })
    }
    const sessionId = sessionIdOf(grant, route.chatId)
    from.session = sessionId
    switch (route.to) {
      case 'read':
        return protocol.read(chats, sessionId)
      case 'stream':
        return (await protocol.stream(chats, { chatId: route.chatId, sessionId })) ?? nothing()
      default:
        await chats.stop(sessionId)
        return nothing()
    }
  }

  return async (request) => {
    const from = { prefix: '', session: null }
    try {
      return await answer(request, from)
    } catch (error) {
      return refused(error, { ...from, expose, onError })
    }
  }
}

const nothing = (): Response => new Response(null, { status: 204 })

function checked(options: HandlerOptions, protocol: ServedProtocol): HandlerOptions {
  const { authorize, path = '/', maxBodyBytes = 1 } = options ?? {}
  const wrong = (message: string, key: string): ConfigError => new ConfigError('invalid_config', message, key)
  if (authorize !== 'none' && typeof authorize !== 'function') {
    throw wrong(
      "authorize must say whose sessions a request may see: (request) => 'ann', or 'none' where everybody may see all.",
      'authorize',
    )
  }
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw wrong(`path must be where the handler is mounted, such as '${protocol.path}'.`, 'path')
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw wrong('maxBodyBytes must be a whole number from 1.', 'maxBodyBytes')
  return options
}
