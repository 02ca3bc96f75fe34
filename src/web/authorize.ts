import type { IsContextFree, WithContext } from '../core/tools/tool.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'
import { findTagsFault, type SessionTags } from '../core/sessions/store/session-tags.js'
import type { Principal } from '../../machines/agent/principal.js'
import { parsePrincipal } from '../core/sessions/principal.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'

/**
 * The rights of a request. A string is short for `{ prefix }`. Null and undefined refuse the request (401). If the
 * agent's tools require a `context`, the grant must include it.
 *
 * - `prefix`: the request may read and answer sessions whose ids start with the prefix and a colon
 * - `context`: the app's object, passed to tools when a message or an answer in this request makes a run work
 * - `by`: the person or program that sends the request. It is logged with each message and answer, and approval terms
 *   are checked against it. Pages cannot set it
 * - `tags`: the tags of a session that this request starts, for `store.list({ tags })`
 * - `mayContinue`: whether opening a stream may continue a run whose process has died. The run then works with this `context`,
 * so set it only if that is the context of the person who started the run. By default, opening a stream only watches
 * the run
 */
export type Grant<Context = unknown> =
  | (IsContextFree<Context> extends true ? string : never)
  | WithContext<
      { prefix: string; by?: string | Principal; tags?: SessionTags; mayContinue?: boolean },
      Context
    >
  | null
  | undefined

/**
 * Called before anything else in a request is read. `'none'` allows every request to read, answer and continue every
 * session. If the function throws a `Response`, that response is sent. Any other error becomes a 500.
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

export interface AccessGrant {
  prefix: string
  context: unknown
  tags: SessionTags | undefined
  by: Principal | undefined
  mayContinue: boolean
}

/** The rights without authorization. */
export const openGrant: AccessGrant = {
  prefix: '',
  context: undefined,
  tags: undefined,
  by: undefined,
  mayContinue: true,
}

/** @throws {StatewrightError} `unauthorized`, `authorize_failed`, or the `Response` that `authorize` threw */
export async function authorizeRequest(authorize: Authorize, request: Request): Promise<AccessGrant> {
  if (authorize === 'none') return openGrant
  let grant: Grant
  try {
    grant = await authorize(request)
  } catch (cause) {
    if (cause instanceof Response) throw cause
    throw new StatewrightError('authorize_failed', 'authorize() threw.', 'authorize', { cause })
  }
  if (grant === null || grant === undefined)
    throw new StatewrightError('unauthorized', 'authorize() did not accept this request. Sign in first.')
  const fail = (message: string): never => {
    throw new StatewrightError('authorize_failed', `authorize() returned ${message}.`, 'authorize')
  }
  const given: AnyGrant = typeof grant === 'string' ? { prefix: grant } : grant
  const { prefix, context, tags, by, mayContinue = false } = given
  if (typeof prefix !== 'string' || prefix === '') fail('no prefix')
  if (typeof mayContinue !== 'boolean') fail('a mayContinue that is neither true nor false')
  const tagsFault = tags === undefined ? null : findTagsFault(tags)
  if (tagsFault !== null) fail(`tags, but it ${tagsFault}`)
  const sender = by === undefined ? undefined : parsePrincipal(by)
  if (sender === null) fail('a by that is neither a name nor { id, roles? }')
  return { prefix, context, tags, by: sender ?? undefined, mayContinue }
}

type AnyGrant = { prefix: string; context?: unknown; by?: unknown; tags?: SessionTags; mayContinue?: boolean }

/** Colons are excluded, because the text before the last colon of a session id is the prefix. */
const chatIdPattern = /^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}$/

/** The session id of a page's chat. @throws {UsageError} `invalid_session` */
export function toSessionId({ prefix }: Pick<AccessGrant, 'prefix'>, chatId: unknown): string {
  // With a prefix, a dash is never the first character of the session id.
  const isValid = typeof chatId === 'string' && chatIdPattern.test(chatId)
  if (!isValid || (prefix === '' && chatId.startsWith('-')))
    throw new UsageError(
      'invalid_session',
      'A chat id consists of 1 to 128 characters: letters (A-Z, a-z), digits and . _ @ -. It must not start with a dot. Without a prefix, it must not start with a dash either.',
      'id',
    )
  return checkSessionId(prefix === '' ? chatId : `${prefix}:${chatId}`)
}
