import type { Clock } from '../base/clock.js'
import { ConfigError, StatewrightError, UsageError } from '../base/errors.js'
import { warnProcess } from '../base/platform.js'
import { type Alarm, alarmPrefix, parseAlarm } from './alarm.js'
import { limitStoreTime } from './store/checked-store.js'
import type { SessionStore } from './store/store.js'
import { StoreError } from './store/store-error.js'
import type { SessionTimers, StoredTimer } from './store/timers.js'

const pageSize = 200
/** A claim on an alarm expires after this time, so that another process can take over from one that died. */
const claimMs = 30_000
const renewMs = 10_000

/** Wakes the sleeping sessions of a store. */
export interface Waker {
  /** Starts polling. */
  start(): void
  /** Stops polling. Resolves when the sessions of this process have ended or stopped. */
  stop(): Promise<void>
  /** Number of sessions that this process runs. */
  readonly active: number
}

export interface AlarmWakerParts {
  timers: SessionTimers
  clock: Clock
  /** Time between two polls of the store, in milliseconds. */
  pollMs: number
  /** Maximum number of concurrent sessions. */
  concurrency: number
  /** Whether this process may wake the session. The session's agent or machine may exist only in another deployment. */
  mayWake: (alarm: Alarm) => boolean
  /**
   * Runs a session until it settles. Returns its remaining sleep in milliseconds, or undefined if it does not sleep.
   */
  run: (session: string) => Promise<number | undefined>
  /** Stops the sessions in progress at a point where another process can continue. */
  drain: () => Promise<void>
  /**
   * Lists sessions that need work but may have no alarm, such as sessions with unread messages. Called with each poll.
   */
  listWaiting?: (() => Promise<string[]>) | undefined
  /** Receives errors with the id of their session. Defaults to a process warning. */
  onError?: ((error: unknown, at: { session?: string }) => void) | undefined
}

/** Polls the timers of a store and wakes a session for each due alarm. */
export class AlarmWaker implements Waker {
  readonly #parts: AlarmWakerParts
  readonly #timers: SessionTimers
  readonly #clock: Clock
  readonly #running = new Map<string, Promise<void>>()
  /** Ids of alarms that have been reported as damaged. */
  readonly #damaged = new Set<string>()
  #nextPoll: unknown
  #state: 'idle' | 'started' | 'stopped' = 'idle'
  #polling: Promise<void> | null = null

  constructor(parts: AlarmWakerParts) {
    this.#parts = parts
    this.#timers = parts.timers
    this.#clock = parts.clock
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
    await this.#parts.drain()
    await Promise.allSettled(this.#running.values())
  }

  #poll(): void {
    this.#polling = this.#pollOnce()
  }

  async #pollOnce(): Promise<void> {
    try {
      await this.#wakeDue()
      for (const session of (await this.#parts.listWaiting?.()) ?? []) this.#runWaiting(session)
    } catch (error) {
      this.#report(error, {})
    }
    this.#polling = null
    if (this.#state === 'started')
      this.#nextPoll = this.#clock.setTimeout(() => this.#poll(), this.#parts.pollMs)
  }

  async #wakeDue(): Promise<void> {
    let after: StoredTimer | undefined
    do {
      // oxlint-disable-next-line no-await-in-loop -- pages are read in order
      const { now, timers } = await this.#timers.listDue({ limit: pageSize, after })
      for (const timer of timers) {
        if (this.#state !== 'started' || this.#running.size >= this.#parts.concurrency) return
        // oxlint-disable-next-line no-await-in-loop -- claims are made in order
        await this.#claim(timer, now)
      }
      after = timers.length === pageSize ? timers.at(-1) : undefined
    } while (after)
  }

  /** Claims an alarm by moving it ahead, so that other processes ignore it while this process renews the claim. */
  async #claim(timer: StoredTimer, now: number): Promise<void> {
    const alarm = parseAlarm(timer)
    if (alarm === null) return this.#reportDamaged(timer.id)
    const { session } = alarm
    if (this.#running.has(session) || !this.#parts.mayWake(alarm)) return
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
    /** The remaining sleep in milliseconds. Null means that the alarm is kept. */
    let leftMs: number | undefined | null = null
    try {
      leftMs = await this.#parts.run(session)
    } catch (error) {
      const isDeleted = error instanceof StatewrightError && deletedCodes.has(error.code)
      const isRetryable = error instanceof StatewrightError && error.retryable
      if (!isRetryable && !isDeleted) this.#report(error, { session })
      // The alarms of deleted sessions and of unreadable logs are removed. Other errors may be temporary, or limited to
      // this process.
      if (isDeleted || (error instanceof StoreError && !isRetryable)) leftMs = undefined
    }
    this.#clock.clearTimeout(renewal)
    renewal = null
    if (leftMs === null) return
    // The remaining wait counts from the last renewal, about `claimMs` before `at`.
    const to = leftMs === undefined ? null : at - claimMs + leftMs
    try {
      await this.#timers.move({ id, from: at, to })
    } catch (error) {
      this.#report(error, { session })
    }
  }

  #runWaiting(session: string): void {
    if (this.#running.has(session) || this.#state !== 'started') return
    if (this.#running.size >= this.#parts.concurrency) return
    const running = this.#parts
      .run(session)
      .then(
        () => undefined,
        (error: unknown) => {
          if (!(error instanceof StatewrightError && (error.retryable || deletedCodes.has(error.code))))
            this.#report(error, { session })
        },
      )
      .finally(() => this.#running.delete(session))
    this.#running.set(session, running)
  }

  /** Reports a damaged alarm once. The alarm is kept in the store for a process that can read it. */
  #reportDamaged(id: string): void {
    if (!id.startsWith(alarmPrefix) || this.#damaged.has(id)) return
    this.#damaged.add(id)
    const message = `The timer '${id}' cannot be read. It is damaged or was written by a newer Statewright, so it is skipped.`
    this.#report(new StoreError('corrupt_log', message, id), { session: id.slice(alarmPrefix.length) })
  }

  #report(error: unknown, at: { session?: string }): void {
    try {
      ;(this.#parts.onError ?? warn)(error, at)
    } catch {
      // A failing listener must not prevent other sessions from waking.
    }
  }
}

const deletedCodes: ReadonlySet<string> = new Set(['not_begun', 'unknown_session'])

function warn(error: unknown, { session }: { session?: string }): void {
  const subject = session === undefined ? 'The waker' : `session '${session}'`
  const text = error instanceof Error ? error.message : String(error)
  warnProcess(`${subject}: ${text}`)
}

/** Timeout for a store call. */
const storeTimeoutMs = 30_000

/** @throws {ConfigError} `no_timers` */
export function getTimers(store: SessionStore, clock: Clock): SessionTimers {
  const { timers } = limitStoreTime(store, storeTimeoutMs, clock, '. Check that it is reachable.')
  if (timers) return timers
  throw new ConfigError(
    'no_timers',
    'This store has no timers, so nothing in it can be woken. Use memoryStore(), fileStore() or postgresStore(), or implement ' +
      '`timers` in a custom store.',
    'store',
  )
}
