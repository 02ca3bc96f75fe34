import { valueOr } from './maybe-promise.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { readProperty, toJson } from './json.js'
import { type ModelActorError, createModelFailure } from '../../../machines/agent/model-response.js'

/**
 * Base class of all Statewright errors. It has a stable `code`, a message with a remedy, and the affected key, call or
 * option.
 * @example if (error instanceof StatewrightError && error.code === 'session_busy') await later()
 */
export class StatewrightError extends Error {
  override readonly name: string = 'StatewrightError'
  /** A fixed code, such as `invalid_config`, `unknown_call`, `missing_package`, … */
  readonly code: string
  /** The configuration key (`limits.maxSteps`), call id or option that the error is about. */
  readonly subject: string | undefined

  constructor(code: string, message: string, subject?: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.subject = subject
  }

  /**
   * Whether the same call may succeed later without a change, for example because the session was busy. Intended for
   * queues and engines that retry.
   * @example if (error instanceof StatewrightError && !error.retryable) throw error
   */
  get retryable(): boolean {
    return retryableCodes.has(this.code)
  }
}

const retryableCodes: ReadonlySet<string> = new Set(
  (
    'session_busy lease_lost out_of_order disk_full store_unavailable engine_unavailable host_function_failed ' +
    'out_of_turn stopped stranded newer_log draining'
  ).split(' '),
)

/**
 * An invalid configuration. Thrown before anything is sent.
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
 * A call that the current state of the run does not allow, such as a second answer to an approval request.
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

export function configError(message: string, subject?: string): ConfigError {
  return new ConfigError('invalid_config', message, subject)
}

export function optionError(message: string, subject?: string): UsageError {
  return new UsageError('invalid_option', message, subject)
}

export function inputError(message: string, subject?: string): UsageError {
  return new UsageError('invalid_input', message, subject)
}

/** An error and its chain of causes, up to `most`. Stops at a cycle. */
export function listCauses(error: unknown, most = 5): unknown[] {
  const chain: unknown[] = []
  for (let next = error; chain.length < most && !chain.includes(next); next = readProperty(next, 'cause')) {
    if (next === undefined && chain.length > 0) break
    chain.push(next)
  }
  return chain
}

/** Describes any thrown value in a sentence, including its causes. Never throws. */
export function describeError(error: unknown): string {
  const parts: string[] = []
  for (const cause of listCauses(error)) {
    const text = describeCause(cause)
    if (!parts.some((part) => part.includes(text))) parts.push(text)
    // Statewright errors already include their cause in the message.
    if (isStatewrightError(cause)) break
  }
  return parts.join(': ').replaceAll('.: ', ': ')
}

function describeCause(error: unknown): string {
  if (typeof error === 'string') return error.trim() || 'an empty string was thrown'
  const message = readProperty(error, 'message')
  if (typeof message === 'string' && message.trim() !== '') return message
  // An error without a message is described by its code (such as `ECONNREFUSED` in an AggregateError) or its name.
  for (const key of ['code', 'name']) {
    const word = readProperty(error, key)
    if (typeof word === 'string' && word !== '') return word
  }
  const json = error === undefined ? 'undefined' : JSON.stringify(toJson(error))
  return `${json} was thrown`
}

function isStatewrightError(error: unknown): boolean {
  return valueOr(() => error instanceof StatewrightError, false)
}

const thrownByPlain = new WeakMap<object, { error: unknown }>()

export function rememberThrown<Plain extends object>(plain: Plain, error: unknown): Plain {
  thrownByPlain.set(plain, { error })
  return plain
}

/** Adds the thrown error as `cause` if it was thrown in this process. JSON omits the cause. */
export function attachCause<Failure extends { code: string; message: string }>(
  failure: Failure,
  plain: object,
): Failure & { cause?: unknown } {
  const thrown = thrownByPlain.get(plain)
  if (thrown) Object.defineProperty(failure, 'cause', { value: thrown.error, enumerable: false })
  return failure
}

export function hasThrown(plain: object): boolean {
  return thrownByPlain.has(plain)
}

/** Converts the rejection of an actor to plain data for the machine, unless it already is. */
export function toPlainError(error: unknown): ModelActorError {
  if (isRecord(error) && !(error instanceof Error) && 'kind' in error && 'jitter' in error)
    return error as unknown as ModelActorError
  return rememberThrown(createActorError('internal', describeError(error)), error)
}

export function createActorError(code: string, message: string): ModelActorError {
  return { ...createModelFailure({ kind: 'fatal', code, message }), usage: null, jitter: 1 }
}
