import type { IsContextFree, WithContext } from '../core/tools/tool.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'
import { findTagsFault, type SessionTags } from '../core/sessions/store/session-tags.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'

/**
 * What a request may do. A string is the prefix alone; null and undefined refuse the request (401). Where tools of the agent want
 * a `context`, the grant must have it.
 *
 * - `prefix`: the request may read and answer the sessions whose ids begin with it and a colon
 * - `context`: the app's own object. Tools get it when a message or an answer of this request makes a run work
 * - `tags`: what `store.list({ tags })` finds the session by when a message of this request begins a run
 * - `mayContinue`: whether opening a stream may continue a run that its process left unfinished. The run then works with
 *   this `context`, so say `true` only where that is the context of the person who started the run. Default: false,
 *   and a reader watches only
 */
export type Grant<Context = unknown> =
  | (IsContextFree<Context> extends true ? string : never)
  | WithContext<{ prefix: string; tags?: SessionTags; mayContinue?: boolean }, Context>
  | null
  | undefined

/**
 * Called for each request before anything else of the request is read. `'none'`: every request may read, answer and
 * continue every session. A `Response` that the function throws is sent as the answer; any other error becomes a 500.
 *
 * @example
 * const users: Record<string, string> = { 'Bearer 7f3a': 'ann' }
 * const authorize: Authorize = (request) => {
 *   const user = users[request.headers.get('authorization') ?? '']
 *   return user === undefined ? null : { prefix: user, context: { user } }
 * }
 */
export type Authorize<Context = unknown> =
  | (IsContextFree<Context> extends true ? 'none' : never)
  | ((request: Request) => Grant<Context> | Promise<Grant<Context>>)

/** A checked `Grant`: what a request may do with the sessions whose ids begin with the prefix. */
export interface AccessGrant {
  prefix: string
  /** What tools get. */
  context: unknown
  /** Of the sessions whose runs the request begins. */
  tags: SessionTags | undefined
  /** Whether opening a stream may continue a run that another request has started. */
  mayContinue: boolean
}

/**
 * @throws {StatewrightError} `unauthorized`, `authorize_failed`
 * @throws a `Response`, as `authorize` threw it
 */
export async function authorizeRequest(authorize: Authorize, request: Request): Promise<AccessGrant> {
  if (authorize === 'none') return { prefix: '', context: undefined, tags: undefined, mayContinue: true }
  let grant: Grant
  try {
    grant = await authorize(request)
  } catch (cause) {
    if (cause instanceof Response) throw cause
    throw new StatewrightError('authorize_failed', 'authorize() threw.', 'authorize', { cause })
  }
  if (grant === null || grant === undefined)
    throw new StatewrightError('unauthorized', 'Sign in first: authorize() did not accept this request.')
  const { prefix, context, tags, mayContinue = false } = typeof grant === 'string' ? { prefix: grant } : grant
  if (typeof prefix !== 'string' || prefix === '')
    throw new StatewrightError('authorize_failed', 'authorize() returned no prefix.', 'authorize')
  if (typeof mayContinue !== 'boolean') {
    throw new StatewrightError(
      'authorize_failed',
      'authorize() returned a mayContinue that is neither true nor false.',
      'authorize',
    )
  }
  const tagsFault = tags === undefined ? null : findTagsFault(tags)
  if (tagsFault !== null)
    throw new StatewrightError(
      'authorize_failed',
      `authorize() returned tags, but it ${tagsFault}.`,
      'authorize',
    )
  return { prefix, context, tags, mayContinue }
}

/** No colon: in a session id, the text before the last colon is the prefix. */
const chatIdPattern = /^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}$/

/**
 * The session id of a page's chat.
 * @throws {UsageError} `invalid_session`
 */
export function toSessionId({ prefix }: Pick<AccessGrant, 'prefix'>, chatId: unknown): string {
  // Behind a prefix a dash is not the first character of the session id.
  if (
    typeof chatId !== 'string' ||
    !chatIdPattern.test(chatId) ||
    (prefix === '' && chatId.startsWith('-'))
  ) {
    throw new UsageError(
      'invalid_session',
      'The id of a chat has 1 to 128 letters (A-Z, a-z), digits and . _ @ -, and does not begin with a dot (without a prefix: nor with a dash).',
      'id',
    )
  }
  return checkSessionId(prefix === '' ? chatId : `${prefix}:${chatId}`)
}
