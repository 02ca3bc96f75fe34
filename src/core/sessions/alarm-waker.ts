import type { Clock } from '../base/clock.js'
import { ConfigError, describeError, StatewrightError, UsageError } from '../base/errors.js'
import { warnProcess } from '../base/platform.js'
import { type Alarm, alarmPrefix, parseAlarm } from './alarm.js'
import { limitStoreTime } from './store/checked-store.js'
import type { SessionStore } from './store/store.js'
import { StoreError } from './store/store-error.js'
import { listAllDue, type SessionTimers, type StoredTimer } from './store/timers.js'

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
  pollMs: number
  concurrency: number
  /** The session's agent or machine may exist only in another deployment. */
  mayWake: (alarm: Alarm) => boolean
  /** Runs a session until it settles. Returns its remaining sleep in milliseconds, if it sleeps. */
  run: (session: string) => Promise<number | undefined>
  drain: () => Promise<void>
  /** Lists sessions that may need work without an alarm, such as unread messages. Called with each poll. */
  listWaiting?: (() => Promise<string[]>) | undefined
  /** Defaults to a process warning. */
  onError?: ErrorListener | undefined
}

/** Polls the timers of a store and wakes a session for each due alarm. */
export function createAlarmWaker(parts: AlarmWakerParts): Waker {
  const { timers, clock } = parts
  const running = new Map<string, Promise<unknown>>()
  const damaged = new Set<string>()
  let nextPoll: unknown
  let state: 'idle' | 'started' | 'stopped' = 'idle'
  let polling: Promise<void> | null = null

  const mayRunMore = (): boolean => state === 'started' && running.size < parts.concurrency

  const report: ErrorListener = (error, at) => reportError(parts.onError, error, at)

  const poll = async (): Promise<void> => {
    try {
      for await (const { timer, now } of listAllDue(timers)) {
        if (!mayRunMore()) break
        await claim(timer, now)
      }
      for (const session of (await parts.listWaiting?.()) ?? [])
        if (!running.has(session) && mayRunMore()) track(session, runToRest(session))
    } catch (error) {
      report(error, {})
    }
    if (state === 'started') nextPoll = clock.setTimeout(() => (polling = poll()), parts.pollMs)
  }

  const track = (session: string, work: Promise<unknown>): void => {
    const done = work.finally(() => running.delete(session))
    running.set(session, done)
  }

  /** Claims an alarm by moving it ahead, so that other processes ignore it while this one renews the claim. */
  const claim = async (timer: StoredTimer, now: number): Promise<void> => {
    const { id, at } = timer
    const alarm = parseAlarm(timer)
    if (alarm === null) return reportDamaged(id)
    const { session } = alarm
    if (running.has(session) || !parts.mayWake(alarm)) return
    const until = now + claimMs
    if (await timers.move({ id, from: at, to: until })) track(session, wake(id, session, until))
  }

  /** Runs a session until it settles, then removes its alarm. Never rejects. */
  const wake = async (id: string, session: string, claimedUntil: number): Promise<void> => {
    let at = claimedUntil
    let renewal: unknown
    const renewLater = (): void => {
      renewal = clock.setTimeout(() => void renew(), renewMs)
    }
    const renew = async (): Promise<void> => {
      try {
        // If another process has claimed the alarm, the session's lease decides which of the two continues.
        if (!(await timers.move({ id, from: at, to: at + renewMs }))) return
        at += renewMs
      } catch {
        // The next attempt may succeed.
      }
      if (renewal !== null) renewLater()
    }
    renewLater()
    const leftMs = await runToRest(session)
    clock.clearTimeout(renewal)
    renewal = null
    if (leftMs === null) return
    // The remaining wait counts from the last renewal, about `claimMs` before `at`.
    const to = leftMs === undefined ? null : at - claimMs + leftMs
    try {
      await timers.move({ id, from: at, to })
    } catch (error) {
      report(error, { session })
    }
  }

  /** The remaining sleep in milliseconds, if the session sleeps. Null if its alarm must be kept. Never rejects. */
  const runToRest = async (session: string): Promise<number | undefined | null> => {
    try {
      return await parts.run(session)
    } catch (error) {
      const isDeleted =
        error instanceof StatewrightError && ['not_begun', 'unknown_session'].includes(error.code)
      const isExpected = isDeleted || (error instanceof StatewrightError && error.retryable)
      if (!isExpected) report(error, { session })
      // The alarms of deleted sessions and of unreadable logs are removed. Other errors may be temporary, or limited to
      // this process.
      return isDeleted || (error instanceof StoreError && !error.retryable) ? undefined : null
    }
  }

  /** Reports a damaged alarm once. It is kept in the store for a process that can read it. */
  const reportDamaged = (id: string): void => {
    if (!id.startsWith(alarmPrefix) || damaged.has(id)) return
    damaged.add(id)
    const message = `The timer '${id}' cannot be read. It is damaged or was written by a newer Statewright, so it is skipped.`
    report(new StoreError('corrupt_log', message, id), { session: id.slice(alarmPrefix.length) })
  }

  return {
    get active() {
      return running.size
    },
    start() {
      if (state === 'stopped')
        throw new UsageError('draining', 'This waker was stopped. Create a new one.', 'start')
      if (state === 'started') return
      state = 'started'
      polling = poll()
    },
    async stop() {
      state = 'stopped'
      clock.clearTimeout(nextPoll)
      await polling
      await parts.drain()
      await Promise.allSettled(running.values())
    },
  }
}

type ErrorListener = (error: unknown, at: { session?: string }) => void

/** Reports an error from background work. A failing listener must not stop the session, or others. */
export function reportError(
  listener: ErrorListener | undefined,
  error: unknown,
  at: { session?: string },
): void {
  try {
    ;(listener ?? warn)(error, at)
  } catch {
    // The error cannot be reported.
  }
}

function warn(error: unknown, { session }: { session?: string }): void {
  warnProcess(`${session === undefined ? 'The waker' : `session '${session}'`}: ${describeError(error)}`)
}

const storeTimeoutMs = 30_000

/** @throws {ConfigError} `no_timers` */
export function getTimers(store: SessionStore, clock: Clock): SessionTimers {
  const { timers } = limitStoreTime(store, storeTimeoutMs, clock, '. Check that it is reachable.')
  if (timers) return timers
  const message =
    'This store has no timers, so nothing in it can be woken. Use memoryStore(), fileStore() or postgresStore(), or implement ' +
    '`timers` in a custom store.'
  throw new ConfigError('no_timers', message, 'store')
}
