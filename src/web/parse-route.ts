import { StatewrightError, UsageError } from '../core/base/errors.js'

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
