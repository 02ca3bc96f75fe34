import { type Clock, systemClock } from '../core/base/clock.js'
import { expectArgument } from '../core/base/values.js'
import { checkOptions, countRule, durationRule, type OptionRules } from '../core/config/check-options.js'
import { type Agents, agentsRule, getCommonStore } from '../core/drive/define-agents.js'
import { createSessionRunner } from '../core/drive/driver.js'
import type { RunSessionOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'
import {
  addHostValues,
  checkHostFunctions,
  type HostFunctions,
  type HostOptionsFor,
} from '../core/drive/host-functions.js'
import { mayWake } from '../core/drive/wake-sleepers.js'
import { createAlarmWaker, getTimers, type Waker } from '../core/sessions/alarm-waker.js'

/** Options for `createWaker`. */
export interface WakerOptions<Context = unknown> {
  /** The application's context for the tools of a session. Called each time the waker works on the session. */
  context?: NonNullable<HostFunctions<Context>['context']>
  /** The time between two polls of the store, in milliseconds. Defaults to 1,000. */
  pollMs?: number
  /** The maximum number of sessions that this process runs at the same time. Defaults to 50. */
  concurrency?: number
  /** How long sessions may run after `stop`, in milliseconds. Then they stop durably. Defaults to 20,000. */
  drainMs?: number
  /** Wakes a session. Defaults to `runSession`. An engine passes `(options) => sessions.enqueue(options)`. */
  run?: (options: RunSessionOptions) => Promise<SessionResult | void>
  /** Receives errors with the id of their session. Defaults to a process warning. */
  onError?: (error: unknown, at: { session?: string }) => void
  /** Defaults to the system clock. */
  clock?: Clock
}

const optionRules: OptionRules<WakerOptions> = {
  context: null,
  pollMs: { is: (value) => Number.isFinite(value) && Number(value) >= 1, phrase: 'a number of at least 1' },
  concurrency: countRule,
  drainMs: durationRule,
  run: null,
  onError: null,
  clock: null,
}

/**
 * Wakes sessions that sleep (`sleepUntil`) or wait for the next window of a shared budget. Any number of processes can
 * run a waker on one store; one wakes each session, and another takes over if it dies. The store's clock decides.
 *
 * @example
 * const agents = defineAgents({ reporter: createAgent({ model, store: memoryStore() }) })
 * const waker = createWaker(agents)
 * waker.start()
 * process.once('SIGTERM', () => void waker.stop().then(() => process.exit(0)))
 * @throws {ConfigError} `invalid_config` if the agents have no common store, `no_timers` if it has no timers
 * @throws {UsageError} `invalid_option`
 */
export function createWaker<Context = unknown>(
  agents: Agents<Context>,
  ...options: HostOptionsFor<WakerOptions<NoInfer<Context>>, NoInfer<Context>>
): Waker
export function createWaker(agents: Agents, options: WakerOptions = {}): Waker {
  expectArgument('createWaker(agents)', agents, agentsRule)
  checkOptions('createWaker(agents, options)', options, optionRules)
  checkHostFunctions('createWaker', options)
  const { pollMs = 1000, concurrency = 50, drainMs, clock = systemClock, onError, run } = options
  const runner = createSessionRunner(agents, drainMs === undefined ? {} : { drainMs })
  const runHere: NonNullable<WakerOptions['run']> = async (request) =>
    runner.runSession(await addHostValues(options, request, false))
  return createAlarmWaker({
    timers: getTimers(getCommonStore(agents), clock),
    clock,
    pollMs,
    concurrency,
    onError,
    mayWake: (alarm) => mayWake(agents, alarm),
    run: async (session) => {
      const result = await (run ?? runHere)({ session })
      // A run that still sleeps was woken too early by this process's clock.
      return result?.stopped ? (result.waitMs ?? 0) : result?.wakeMs
    },
    drain: () => runner.drain(),
  })
}
