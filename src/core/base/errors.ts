import { readProperty, toJson } from './json.js'
import { type ModelActorError, createModelFailure } from '../../../machines/agent/model-response.js'

/**
 * What every error class of Statewright has: a stable `code`, a sentence that says what to do, and the key, call or
 * option that it is about.
 *
 * @example if (error instanceof StatewrightError && error.code === 'session_busy') await later()
 */
export class StatewrightError extends Error {
  override readonly name: string = 'StatewrightError'
  /** One word of a closed list: `invalid_config`, `unknown_call`, `missing_package`, … */
  readonly code: string
  /** The configuration key (`limits.maxSteps`), call id or option that the error is about. */
  readonly subject: string | undefined

  constructor(code: string, message: string, subject?: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.subject = subject
  }

  /**
   * Whether the same call can succeed later without a change: the session was another's, the store was
   * away. For queues and engines that try again.
   *
   * @example if (error instanceof StatewrightError && !error.retryable) throw error
   */
  get retryable(): boolean {
    return retryableCodes.has(this.code)
  }
}

/** What passes by itself. */
const retryableCodes: ReadonlySet<string> = new Set([
  'session_busy',
  'lease_lost',
  'out_of_order',
  'disk_full',
  'store_unavailable',
  'engine_unavailable',
  'host_function_failed',
  'out_of_turn',
  'stopped',
  'stranded',
  'newer_log',
  'draining',
])

/**
 * A configuration that cannot be run. Thrown before anything is sent.
 *
 * @example
 * try {
 *   createAgent({ model, limits: { maxSteps: -1 } })
 * } catch (error) {
 *   if (error instanceof ConfigError) console.log(error.code, error.subject) // → invalid_config limits.maxSteps
 * }
 */
export class ConfigError extends StatewrightError {
  override readonly name = 'ConfigError'
}

/**
 * A call that the run's present state does not allow: a second answer to an approval, a reply to a final run.
 *
 * @example
 * try {
 *   run.approve('call_9')
 * } catch (error) {
 *   if (error instanceof UsageError) console.log(error.code, error.subject) // → unknown_call call_9
 * }
 */
export class UsageError extends StatewrightError {
  override readonly name = 'UsageError'
}

/** An error, the errors that caused it, and so on: at most `most`, cycles broken. */
export function listCauses(error: unknown, most = 5): unknown[] {
  const chain: unknown[] = []
  for (let next = error; chain.length < most && !chain.includes(next); next = readProperty(next, 'cause')) {
    if (next === undefined && chain.length > 0) break
    chain.push(next)
  }
  return chain
}

/** A sentence about anything that can be thrown, causes included. Never throws. */
export function describeError(error: unknown): string {
  const parts: string[] = []
  for (const cause of listCauses(error)) {
    const text = describeCause(cause)
    if (!parts.some((part) => part.includes(text))) parts.push(text)
    // An error of ours says in its own words what it was caused by, as far as that helps.
    if (isStatewrightError(cause)) break
  }
  return parts.join(': ').replaceAll('.: ', ': ')
}

function describeCause(error: unknown): string {
  if (typeof error === 'string') return error.trim() || 'an empty text was thrown'
  const message = readProperty(error, 'message')
  if (typeof message === 'string' && message.trim() !== '') return message
  // Without words, an error's code (`ECONNREFUSED` of an AggregateError) or name is all that there is.
  for (const key of ['code', 'name']) {
    const word = readProperty(error, key)
    if (typeof word === 'string' && word !== '') return word
  }
  const json = error === undefined ? 'undefined' : JSON.stringify(toJson(error))
  return `${json} was thrown`
}

/** Never throws, whatever a value does when it is asked what it is. */
function isStatewrightError(error: unknown): boolean {
  try {
    return error instanceof StatewrightError
  } catch {
    return false
  }
}

/** What was thrown, by the plain data that was made of it: in this process alone, and never in a log. */
const thrownByPlain = new WeakMap<object, { error: unknown }>()

export function rememberThrown<Plain extends object>(plain: Plain, error: unknown): Plain {
  thrownByPlain.set(plain, { error })
  return plain
}

/** Code and message of a failure; its `cause` is what was thrown, where it was thrown here. JSON leaves the cause out. */
export function attachCause<Failure extends { code: string; message: string }>(
  failure: Failure,
  plain: object,
): Failure & { cause?: unknown } {
  const kept = thrownByPlain.get(plain)
  if (kept) Object.defineProperty(failure, 'cause', { value: kept.error, enumerable: false })
  return failure
}

export function hasThrown(plain: object): boolean {
  return thrownByPlain.has(plain)
}

/**
 * Whatever an actor rejected with, as plain data that the machine understands. The request actor rejects with plain
 * failures already; this is for everything else.
 */
export function toPlainError(error: unknown): ModelActorError {
  if (isPlainFailure(error)) return error
  const failure = createModelFailure({ kind: 'fatal', code: 'internal', message: describeError(error) })
  return rememberThrown({ ...failure, usage: null, jitter: 1 }, error)
}

function isPlainFailure(error: unknown): error is ModelActorError {
  return (
    typeof error === 'object' &&
    error !== null &&
    !(error instanceof Error) &&
    'kind' in error &&
    'jitter' in error
  )
}
