import type { WithContext } from '../tools/tool.js'
import { expectArgument } from '../base/values.js'
import { checkOptions, durationRule } from '../config/check-options.js'
import { UsageError } from '../base/errors.js'
import { systemClock } from '../base/clock.js'
import type { Agents, AnyAgent } from './define-agents.js'
import { runSession } from './drive.js'
import { checkDriveOptions, type RunSessionOptions } from './drive-options.js'
import type { SessionResult } from './drive-rest.js'

/** Options for a session runner. */
export interface SessionRunnerOptions {
  /** How long calls may continue after `drain`, in milliseconds, before they stop durably. Defaults to 20,000. */
  drainMs?: number
}

/** Runs the sessions of one process. An engine calls `runSession`, and the SIGTERM handler calls `drain`. */
export interface SessionRunner<Context = unknown> {
  /** The function `runSession` with these agents. After `drain`, rejects with `draining`, which is `retryable`. */
  runSession: (options: WithContext<RunSessionOptions, Context>) => Promise<SessionResult>
  /** Refuses new calls. Calls in progress continue for `drainMs`, then stop. Resolves when all have settled. */
  drain: () => Promise<void>
  /** Number of `runSession` calls in progress. */
  readonly active: number
}

/**
 * Runs sessions for an engine until the process shuts down.
 * @example
 * const { drain } = createSessionRunner(createAgent({ model, store: memoryStore() }))
 * process.once('SIGTERM', () => void drain().then(() => process.exit(0)))
 * @throws {UsageError} `invalid_option` if `drainMs` is not a non-negative number
 */
export function createSessionRunner<Context = unknown>(
  agents: AnyAgent<Context> | Agents<Context>,
  options?: SessionRunnerOptions,
): SessionRunner<Context>
export function createSessionRunner(
  agents: AnyAgent | Agents,
  options: SessionRunnerOptions = {},
): SessionRunner {
  expectArgument('createSessionRunner(agents)', agents, {
    is: (value) => typeof value === 'object' && value !== null && ('run' in value || 'findAgentFor' in value),
    phrase: 'an agent, or the return value of defineAgents(…)',
  })
  const { drainMs = 20_000 } = checkOptions<SessionRunnerOptions>(
    'createSessionRunner(agents, options)',
    options,
    { drainMs: durationRule },
  )
  const stop = new AbortController()
  const active = new Set<Promise<unknown>>()
  let drained: Promise<void> | undefined

  const wait = async (): Promise<void> => {
    const timer = systemClock.setTimeout(() => stop.abort(), drainMs)
    while (active.size > 0)
      // No call starts in the meantime.
      await Promise.allSettled(active)
    systemClock.clearTimeout(timer)
  }

  return {
    runSession: async (options) => {
      if (drained)
        throw new UsageError(
          'draining',
          'This process is shutting down and starts nothing new. Run the session in another process.',
          'runSession',
        )
      checkDriveOptions(options)
      const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
      const driving = runSession(agents, { ...options, signal })
      active.add(driving)
      try {
        return await driving
      } finally {
        active.delete(driving)
      }
    },
    drain: () => (drained ??= wait()),
    get active() {
      return active.size
    },
  }
}
