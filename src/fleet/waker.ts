import { type Clock, systemClock } from '../core/base/clock.js'
import { ConfigError, StatewrightError, UsageError } from '../core/base/errors.js'
import { warnProcess } from '../core/base/platform.js'
import { expectArgument, optionsRule } from '../core/base/values.js'
import { expectKnownOptions } from '../core/config/other-names.js'
import { agentsRule, getCommonStore } from '../core/drive/define-agents.js'
import { createSessionRunner } from '../core/drive/driver.js'
import type { Agents } from '../core/drive/define-agents.js'
import type { RunSessionOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'
import {
  addHostValues,
  checkHostFunctions,
  type HostFunctions,
  type HostOptionsFor,
} from '../core/drive/host-functions.js'
import { mayWake } from '../core/drive/wake-sleepers.js'
import { alarmPrefix, parseAlarm } from '../core/sessions/alarm.js'
import { limitStoreTime } from '../core/sessions/store/checked-store.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionTimers, StoredTimer } from '../core/sessions/store/timers.js'

/** Options of `createWaker`. */
export interface WakerOptions<Context = unknown> {
  /** The application's context for the tools of a session. Called each time the waker works on the session. */
  context?: NonNullable<HostFunctions<Context>['context']>
  /** Time between two polls of the store, in milliseconds. Default: 1,000. */
  pollMs?: number
  /** Maximum number of sessions that this process runs at the same time. Default: 50. */
  concurrency?: number
  /**
   * Grace period for running sessions after `stop`, in milliseconds. They then stop where another process can continue.
   * Default: 20,000.
   */
  drainMs?: number
  /** Wakes a session, instead of `runSession` in this process: `(options) => sessions.enqueue(options)` for an engine. */
  run?: (options: RunSessionOptions) => Promise<SessionResult | void>
  /** Receives errors with the id of their session. Defaults to a process warning. */
  onError?: (error: unknown, at: { session?: string }) => void
  /** Defaults to the system clock. */
  clock?: Clock
}

/** Wakes the sleeping sessions of a store. */
export interface Waker {
  /** Starts polling. */
  start(): void
  /** Stops polling. Settles when the sessions of this process have ended or stopped. */
  stop(): Promise<void>
  /** Number of sessions that this process runs. */
  readonly active: number
}

const optionKeys = [
  'context',
  'pollMs',
  'concurrency',
  'drainMs',
  'run',
  'onError',
  'clock',
] as const satisfies (keyof WakerOptions)[]
const pageSize = 200
/** A claim on an alarm expires after this time, so that another process can take over from one that died. */
const claimMs = 30_000
const renewMs = 10_000
/** Timeout for a store call. */
const storeTimeoutMs = 30_000

/**
 * Wakes sessions that sleep (`sleepUntil`) or wait for the next window of a shared budget. Any number of processes can
 * run a waker on one store. One of them wakes each session, and another takes over if it dies. The store's clock
 * decides when a session is due.
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
  expectArgument('createWaker(agents, options)', options, optionsRule)
  expectKnownOptions('createWaker', options, optionKeys)
  checkHostFunctions('createWaker', options)
  checkNumber('pollMs', options.pollMs, 1)
  checkNumber('concurrency', options.concurrency, 1)
  checkNumber('drainMs', options.drainMs, 0)
  return new StoreWaker(agents, options)
}

class StoreWaker implements Waker {
  readonly #agents: Agents
  readonly #timers: SessionTimers
  readonly #clock: Clock
  readonly #pollMs: number
  readonly #concurrency: number
  readonly #onError: NonNullable<WakerOptions['onError']>
  readonly #run: NonNullable<WakerOptions['run']>
  readonly #drain: () => Promise<void>
  readonly #running = new Map<string, Promise<void>>()
  /** Ids of alarms that were reported as damaged. */
  readonly #damaged = new Set<string>()
  #nextPoll: unknown
  #state: 'idle' | 'started' | 'stopped' = 'idle'
  #polling: Promise<void> | null = null

  constructor(agents: Agents, options: WakerOptions) {
    const { pollMs = 1000, concurrency = 50, drainMs, clock = systemClock, onError = warn, run } = options
    this.#agents = agents
    const { timers } = limitStoreTime(getCommonStore(agents), storeTimeoutMs, clock, createTimeoutError)
    if (!timers)
      throw new ConfigError(
        'no_timers',
        'This store has no timers, so nothing in it can be woken. Use memoryStore(), fileStore() or postgresStore(), or implement ' +
          '`timers` in a custom store.',
        'store',
      )
    this.#timers = timers
    this.#clock = clock
    this.#pollMs = pollMs
    this.#concurrency = concurrency
    this.#onError = onError
    const runner = createSessionRunner(agents, drainMs === undefined ? {} : { drainMs })
    this.#run = run ?? (async (request) => runner.runSession(await addHostValues(options, request, false)))
    this.#drain = () => runner.drain()
  }

  get active(): number {
    return this.#running.size
  }

  start(): void {
    if (this.#state === 'stopped')
      throw new UsageError('draining', 'This waker was stopped. Create a new one.', 'start')
    if (this.#state === 'started') return
    this.#state = 'started'
    this.#poll()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#clock.clearTimeout(this.#nextPoll)
    await this.#polling
    await this.#drain()
    await Promise.allSettled(this.#running.values())
  }

  #poll(): void {
    this.#polling = this.#pollOnce()
  }

  async #pollOnce(): Promise<void> {
    try {
      await this.#wakeDue()
    } catch (error) {
      this.#report(error, {})
    }
    this.#polling = null
    if (this.#state === 'started') this.#nextPoll = this.#clock.setTimeout(() => this.#poll(), this.#pollMs)
  }

  async #wakeDue(): Promise<void> {
    let after: StoredTimer | undefined
    do {
      // oxlint-disable-next-line no-await-in-loop -- pages are read in order
      const { now, timers } = await this.#timers.listDue({ limit: pageSize, after })
      for (const timer of timers) {
        if (this.#state !== 'started' || this.#running.size >= this.#concurrency) return
        // oxlint-disable-next-line no-await-in-loop -- claims are made in order
        await this.#claim(timer, now)
      }
      after = timers.length === pageSize ? timers.at(-1) : undefined
    } while (after)
  }

  /** Claims an alarm by moving it ahead, so that other processes leave it alone while this one renews the claim. */
  async #claim(timer: StoredTimer, now: number): Promise<void> {
    const alarm = parseAlarm(timer)
    if (alarm === null) return this.#reportDamaged(timer.id)
    const { session } = alarm
    // Another deployment may have the agent or its version.
    if (this.#running.has(session) || !mayWake(this.#agents, alarm)) return
    const until = now + claimMs
    if (!(await this.#timers.move({ id: timer.id, from: timer.at, to: until }))) return
    const running = this.#wake(timer.id, session, until).finally(() => this.#running.delete(session))
    this.#running.set(session, running)
  }

  /** Runs a session until it settles, then removes its alarm. Never rejects. */
  async #wake(id: string, session: string, claimedUntil: number): Promise<void> {
    let at = claimedUntil
    let renewal: unknown
    const renewLater = (): void => {
      renewal = this.#clock.setTimeout(() => void renew(), renewMs)
    }
    const renew = async (): Promise<void> => {
      try {
        // If another process has claimed the alarm, the session's lease decides which of the two continues.
        if (!(await this.#timers.move({ id, from: at, to: at + renewMs }))) return
        at += renewMs
      } catch {
        // The next attempt may succeed.
      }
      if (renewal !== null) renewLater()
    }
    renewLater()
    let result: SessionResult | void | null = null
    try {
      result = await this.#run({ session })
    } catch (error) {
      const isDeleted = error instanceof UsageError && error.code === 'not_begun'
      const isRetryable = error instanceof StatewrightError && error.retryable
      if (!isRetryable && !isDeleted) this.#report(error, { session })
      // The alarms of deleted sessions and of unreadable logs are removed. Other errors may be temporary, or limited to
      // this process.
      if (isDeleted || (error instanceof StoreError && !isRetryable)) result = undefined
    }
    this.#clock.clearTimeout(renewal)
    renewal = null
    if (result === null) return
    // A run that still sleeps was woken too early by this process's clock.
    const leftMs = result?.stopped ? (result.waitMs ?? 0) : result?.wakeMs
    // The last renewal was about `claimMs` before `at`. A remaining wait counts from there.
    const to = leftMs === undefined ? null : at - claimMs + leftMs
    try {
      await this.#timers.move({ id, from: at, to })
    } catch (error) {
      this.#report(error, { session })
    }
  }

  /** Reports a damaged alarm once. It stays in the store for a process that can read it. */
  #reportDamaged(id: string): void {
    if (!id.startsWith(alarmPrefix) || this.#damaged.has(id)) return
    this.#damaged.add(id)
    const message = `The timer '${id}' cannot be read. It is damaged, or a newer Statewright wrote it. It is skipped.`
    this.#report(new StoreError('corrupt_log', message, id), { session: id.slice(alarmPrefix.length) })
  }

  #report(error: unknown, at: { session?: string }): void {
    try {
      this.#onError(error, at)
    } catch {
      // A failing listener must not keep other sessions asleep.
    }
  }
}

const createTimeoutError = (method: string): StoreError =>
  new StoreError(
    'store_unavailable',
    `The store did not answer ${method}() within ${storeTimeoutMs} ms. Check that it is reachable. The waker tries again.`,
  )

function warn(error: unknown, { session }: { session?: string }): void {
  const subject = session === undefined ? 'The waker' : `session '${session}'`
  const text = error instanceof Error ? error.message : String(error)
  warnProcess(`${subject}: ${text}`)
}

function checkNumber(key: string, value: number | undefined, minimum: number): void {
  if (value === undefined || (Number.isFinite(value) && value >= minimum)) return
  throw new UsageError('invalid_option', `createWaker: ${key} must be a number of at least ${minimum}.`, key)
}
