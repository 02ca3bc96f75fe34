import { StatewrightError, UsageError } from '../core/base/errors.js'
import { checkedSessionId } from '../core/sessions/store/session-id.js'

/**
 * Who a request comes from: the beginning of the ids of that person's sessions, alone or with the app's own object for
 * tools. Null: nobody who may ask.
 *
 * @example
 * const grant: Grant = { prefix: 'ann', context: { user: 'ann', roles: ['editor'] } }
 */
export type Grant = string | { prefix: string; context?: unknown } | null | undefined

/**
 * Asked about each request before anything else of it is read. `'none'`: whoever reaches the handler may read and answer
 * every session. It may throw a `Response`, which is the answer then; whatever else it throws is a 500.
 *
 * @example
 * const users: Record<string, string> = { 'Bearer 7f3a': 'ann' }
 * const authorize: Authorize = (request) => {
 *   const user = users[request.headers.get('authorization') ?? '']
 *   return user === undefined ? null : { prefix: user, context: { user } }
 * }
 */
export type Authorize = 'none' | ((request: Request) => Grant | Promise<Grant>)

/** What a request may do: with the sessions whose ids begin with the prefix. */
export interface Granted {
  prefix: string
  context: unknown
}

/**
 * @throws {StatewrightError} `unauthorized` for a request of nobody, `authorize_failed`
 * @throws a `Response`, as `authorize` threw it
 */
export async function granted(authorize: Authorize, request: Request): Promise<Granted> {
  if (authorize === 'none') return { prefix: '', context: undefined }
  let grant: Grant
  try {
    grant = await authorize(request)
  } catch (cause) {
    if (cause instanceof Response) throw cause
    throw new StatewrightError('authorize_failed', 'authorize() threw.', 'authorize', { cause })
  }
  if (grant === null || grant === undefined)
    throw new StatewrightError('unauthorized', 'Sign in first: nobody is known by this request.')
  const { prefix, context } = typeof grant === 'string' ? { prefix: grant, context: undefined } : grant
  if (typeof prefix !== 'string' || prefix === '')
    throw new StatewrightError('authorize_failed', 'authorize() returned no prefix.', 'authorize')
  return { prefix, context }
}

/** No colon: what stands before the last one is the prefix, whatever people call their chats. */
const chatIds = /^[A-Za-z0-9_@][A-Za-z0-9._@-]{0,127}$/

/**
 * The session that a chat of the page is.
 * @throws {UsageError} `invalid_session`
 */
export function sessionIdOf({ prefix }: Pick<Granted, 'prefix'>, chatId: unknown): string {
  if (typeof chatId !== 'string' || !chatIds.test(chatId)) {
    throw new UsageError(
      'invalid_session',
      'The id of a chat has 1 to 128 letters (A-Z, a-z), digits and . _ @ -, and begins with neither a dot nor a dash.',
      'id',
    )
  }
  return checkedSessionId(prefix === '' ? chatId : `${prefix}:${chatId}`)
}
