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
