import { StatewrightError, UsageError } from '../core/base/errors.js'

/** What a request asks for. */
export type Route = { to: 'say' } | { to: 'read' | 'stream' | 'stop'; chatId: string }

/**
 * `POST path`, `GET path/:id`, `GET path/:id/stream` and `POST path/:id/stop`.
 *
 * @throws {StatewrightError} `not_found`, `method_not_allowed`
 */
export function routed({ method, url }: Pick<Request, 'method' | 'url'>, path: string): Route {
  const { pathname } = new URL(url)
  const base = path.replace(/\/+$/, '')
  if (pathname !== base && !pathname.startsWith(`${base}/`)) throw notFound(pathname)
  const [chatId = '', last, ...more] = pathname.slice(base.length).split('/').slice(1)
  if (more.length > 0) throw notFound(pathname)
  if (chatId === '' && last === undefined) return only(method, 'POST', { to: 'say' })
  const named = { chatId: decoded(chatId) }
  if (last === undefined || last === '') return only(method, 'GET', { to: 'read', ...named })
  if (last === 'stream') return only(method, 'GET', { to: 'stream', ...named })
  if (last === 'stop') return only(method, 'POST', { to: 'stop', ...named })
  throw notFound(pathname)
}

function only(method: string, wanted: string, route: Route): Route {
  if (method === wanted) return route
  throw new StatewrightError('method_not_allowed', `Only ${wanted} is answered here.`, method)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (cause) {
    throw new UsageError('invalid_session', 'The address holds no id of a chat.', 'id', { cause })
  }
}

function notFound(pathname: string): StatewrightError {
  return new StatewrightError(
    'not_found',
    `There is nothing at ${JSON.stringify(pathname.slice(0, 200))}: say where the handler is mounted with its option path.`,
    'path',
  )
}
