import { expectArgument, optionsRule } from '../core/base/values.js'
import { type Clock, systemClock } from '../core/base/clock.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'
import { expectKnownOptions } from '../core/config/known-options.js'
import { agentsRule, getCommonStore } from '../core/drive/common-store.js'
import type { Agents } from '../core/drive/define-agents.js'
import type { RunSessionOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'
import { createSessionRunner } from '../core/drive/driver.js'
import { mayWake } from '../core/drive/wake-sleepers.js'
import { alarmPrefix, firingPrefix, parseAlarm } from '../core/sessions/alarm.js'
import {
  addHostValues,
  checkHostFunctions,
  type HostFunctions,
  type HostOptionsFor,
} from '../core/drive/host-functions.js'
import { limitStoreTime } from '../core/sessions/store/checked-store.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionTimers, StoredTimer } from '../core/sessions/store/timers.js'
import { createOccurrences, type Occurrences } from './occurrences.js'
import { type CatchUp, getTimers, parseSchedule, schedulePrefix, type StoredSchedule } from './schedule.js'

/** What a firing, or a session to wake, is given to: `runSession`, or a function that queues it in an engine. */
export type RunFiring = (options: RunSessionOptions) => Promise<SessionResult | void>

/** How a process carries out the schedules of its store. */
export interface SchedulerOptions<Context = unknown> {
  /** The app's own object for the tools of a firing's session. Called each time a process works on the session. */
  context?: NonNullable<HostFunctions<Context>['context']>
  /** How often the store is asked for what is due, in milliseconds. Default: 1,000. */
  pollMs?: number
  /** Firings that this process runs at the same time. Default: 50. */
  concurrency?: number
  /** How long firings go on after `stop`, in milliseconds; then they stop where another process can continue. Default: 20,000. */
  drainMs?: number
  /**
   * Runs a firing, or wakes a session, in place of `runSession` in this process: `(options) => sessions.enqueue(…)` for an engine. It
   * is done when this resolves.
   */
  run?: RunFiring
  /** Hears what went wrong, with the id of the schedule and the session. Default: a warning of the process. */
  onError?: (error: unknown, at: { schedule?: string; session?: string }) => void
  /** Default: the time of the platform. */
  clock?: Clock
}

/** Carries out the schedules of a store. */
export interface Scheduler {
  /** Begins to look for what is due. */
  start(): void
  /** Looks for nothing more; settles when the firings of this process have ended or stopped. */
  stop(): Promise<void>
  /** How many firings this process runs. */
  readonly active: number
}

/** What the data of a firing's timer is: what its session begins with. */
type Firing = Pick<StoredSchedule, 'agent' | 'input' | 'tags'>

const optionKeys = [
  'context',
  'pollMs',
  'concurrency',
  'drainMs',
  'run',
  'onError',
  'clock',
] as const satisfies (keyof SchedulerOptions)[]
const pageSize = 200
/** At most so many times of a schedule are made up for at once; the next look makes up for more. */
const mostAtOnce = 1000
/** A firing that its process no longer attends to is taken up by another one after so long. */
const attendedMs = 30_000
const attendEveryMs = 10_000
/** How long the store may take for one answer: one that is lost must not end all looking. */
const answerMs = 30_000
/** With `catchUp: 'none'`, a firing may be so late. */
const graceMs = 60_000

/**
 * Begins the sessions of schedules when their times come. Any number of processes may do so with one store: each firing is begun
 * by one of them, and a firing whose process dies is continued by another one. The time is that of the store. Sessions that sleep
 * (`sleepUntil`) are woken in the same way.
 *
 * @example
 * const agents = defineAgents({ reporter: createAgent({ model, store: memoryStore() }) })
 * await schedule(agents, { id: 'daily', cron: '30 8 * * *', timezone: 'Europe/Berlin', input: 'Write the report.' })
 * const scheduler = createScheduler(agents)
 * scheduler.start()
 * process.once('SIGTERM', () => void scheduler.stop().then(() => process.exit(0)))
 * @throws {ConfigError} `invalid_config` where the agents have no common store, `no_timers` where it keeps none
 * @throws {UsageError} `invalid_option`
 */
export function createScheduler<Context = unknown>(
  agents: Agents<Context>,
  ...options: HostOptionsFor<SchedulerOptions<NoInfer<Context>>, NoInfer<Context>>
): Scheduler
export function createScheduler(agents: Agents, options: SchedulerOptions = {}): Scheduler {
  expectArgument('createScheduler(agents)', agents, agentsRule)
  expectArgument('createScheduler(agents, options)', options, optionsRule)
  expectKnownOptions('createScheduler', options, optionKeys)
  checkHostFunctions('createScheduler', options)
  checkNumber('pollMs', options.pollMs, 1)
  checkNumber('concurrency', options.concurrency, 1)
  checkNumber('drainMs', options.drainMs, 0)
  return new StoreScheduler(agents, options)
}

function lateError(what: string): StoreError {
  return new StoreError(
    'store_unavailable',
    `The store did not answer ${what}() within ${answerMs} ms. See that it can be reached; the scheduler asks again.`,
  )
}

class StoreScheduler implements Scheduler {
  readonly #agents: Agents
  readonly #timers: SessionTimers
  readonly #clock: Clock
  readonly #pollMs: number
  readonly #concurrency: number
  readonly #onError: NonNullable<SchedulerOptions['onError']>
  readonly #run: RunFiring
  readonly #drain: () => Promise<void>
  readonly #running = new Map<string, Promise<void>>()
  /** Timers that were reported as unreadable. */
  readonly #damaged = new Set<string>()
  #next: unknown
  #state: 'idle' | 'started' | 'stopped' = 'idle'
  #polling: Promise<void> | null = null

  constructor(agents: Agents, options: SchedulerOptions) {
    const { pollMs = 1000, concurrency = 50, drainMs, clock = systemClock, onError = warn, run } = options
    this.#agents = agents
    this.#timers = getTimers(limitStoreTime(getCommonStore(agents), answerMs, clock, lateError))
    this.#clock = clock
    this.#pollMs = pollMs
    this.#concurrency = concurrency
    this.#onError = onError
    const runner = createSessionRunner(agents, drainMs === undefined ? {} : { drainMs })
    this.#run = run ?? (async (firing) => runner.runSession(await addHostValues(options, firing, false)))
    this.#drain = () => runner.drain()
  }

  get active(): number {
    return this.#running.size
  }

  start(): void {
    if (this.#state === 'stopped')
      throw new UsageError('draining', 'This scheduler was stopped: create another one.', 'start')
    if (this.#state === 'started') return
    this.#state = 'started'
    this.#poll()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#clock.clearTimeout(this.#next)
    await this.#polling
    await this.#drain()
    await Promise.allSettled(this.#running.values())
  }

  #poll(): void {
    this.#polling = this.#look().then(
      () => this.#pollLater(),
      (error: unknown) => {
        this.#report(error, {})
        this.#pollLater()
      },
    )
  }

  #pollLater(): void {
    this.#polling = null
    if (this.#state === 'started') this.#next = this.#clock.setTimeout(() => this.#poll(), this.#pollMs)
  }

  /** One look at everything that is due. What a schedule adds comes later in the order of time, or with the next page. */
  async #look(): Promise<void> {
    let after: StoredTimer | undefined
    let hasFired: boolean
    do {
      hasFired = false
      after = undefined
      do {
        // oxlint-disable-next-line no-await-in-loop -- one page after the other
        const { now, timers } = await this.#timers.listDue({ limit: pageSize, after })
        for (const timer of timers) {
          if (this.#state !== 'started') return
          // oxlint-disable-next-line no-await-in-loop -- one after the other
          if (await this.#handle(timer, now)) hasFired = true
        }
        after = timers.length === pageSize ? timers.at(-1) : undefined
      } while (after)
      // New firings are due earlier than the page that was just read, so this pass does not see them. The next one does.
    } while (hasFired)
  }

  /** Whether it was a schedule that this process has fired. */
  async #handle(timer: StoredTimer, now: number): Promise<boolean> {
    if (timer.id.startsWith(schedulePrefix)) {
      try {
        return await this.#fire(timer, now)
      } catch (error) {
        this.#report(error, { schedule: timer.id.slice(schedulePrefix.length) })
        return false
      }
    }
    if (this.#running.size >= this.#concurrency) return false
    if (timer.id.startsWith(firingPrefix)) await this.#takeFiring(timer, now)
    else await this.#takeAlarm(timer, now)
    return false
  }

  /** Moves a schedule on to its next time, and adds a firing for each time that has come: one step of the store. */
  async #fire({ id, at, data }: StoredTimer, now: number): Promise<boolean> {
    const stored = parseSchedule(data)
    if (stored === null) this.#reportDamaged(id, { schedule: id.slice(schedulePrefix.length) })
    // Another deployment has the agent.
    if (stored === null || !this.#agents.names.includes(stored.agent)) return false
    const { agent, recurrence, input, tags, catchUp, anchor } = stored
    const occurrences = await createOccurrences(recurrence, anchor)
    const due: number[] = []
    let next: number | null = catchUp === 'all' ? at : skipMissed(occurrences, { at, now, catchUp })
    const most = catchUp === 'all' ? mostAtOnce : Infinity
    while (next !== null && next <= now && due.length < most) {
      if (catchUp === 'one') due.length = 0
      due.push(next)
      next = occurrences.findNext(next)
    }
    const firing: Firing = { agent, input, tags }
    const text = JSON.stringify(firing)
    const add = chooseFirings(due, now, catchUp).map((time) => ({
      id: `${firingPrefix}${createFiringId(id.slice(schedulePrefix.length), time)}`,
      at: time,
      data: text,
    }))
    return (await this.#timers.move({ id, from: at, to: next, add })) && add.length > 0
  }

  async #takeFiring(timer: StoredTimer, now: number): Promise<void> {
    const session = timer.id.slice(firingPrefix.length)
    const firing = parseFiring(timer.data)
    if (firing === null) this.#reportDamaged(timer.id, { session })
    if (firing !== null && this.#agents.names.includes(firing.agent))
      await this.#take(timer, now, { session, turn: 1, ...firing })
  }

  /** A run that sleeps, and whose time has come: `runSession` wakes it. */
  async #takeAlarm(timer: StoredTimer, now: number): Promise<void> {
    const alarm = parseAlarm(timer)
    if (alarm === null && timer.id.startsWith(alarmPrefix))
      this.#reportDamaged(timer.id, { session: timer.id.slice(alarmPrefix.length) })
    // Another deployment has the agent, or its version.
    if (alarm !== null && mayWake(this.#agents, alarm))
      await this.#take(timer, now, { session: alarm.session })
  }

  /** Takes what is due for this process: others leave it alone while it is attended to. */
  async #take(timer: StoredTimer, now: number, options: RunSessionOptions): Promise<void> {
    const { session } = options
    if (this.#running.has(session)) return
    const until = now + attendedMs
    if (!(await this.#timers.move({ id: timer.id, from: timer.at, to: until }))) return
    const running = this.#attend(timer.id, options, until).finally(() => this.#running.delete(session))
    this.#running.set(session, running)
  }

  /** Runs a session to its rest, and removes its timer. Never rejects. */
  async #attend(id: string, options: RunSessionOptions, until: number): Promise<void> {
    let at = until
    let attending: unknown
    const attendLater = (): void => {
      attending = this.#clock.setTimeout(() => void attend(), attendEveryMs)
    }
    const attend = async (): Promise<void> => {
      try {
        const next = at + attendEveryMs
        // Another process has taken it: the lease of the session says which of the two goes on.
        if (!(await this.#timers.move({ id, from: at, to: next }))) return
        at = next
      } catch {
        // The next time may succeed.
      }
      if (attending !== null) attendLater()
    }
    attendLater()
    let result: SessionResult | void | null = null
    try {
      result = await this.#run(options)
    } catch (error) {
      const isDeleted = error instanceof UsageError && error.code === 'not_begun'
      const isRetryable = error instanceof StatewrightError && error.retryable
      if (!isRetryable && !isDeleted) this.#report(error, toPlace(options))
      // The timer of a deleted session is removed, and that of a log that cannot be read. Anything else may succeed later, here or
      // in another process.
      if (isDeleted || (error instanceof StoreError && !isRetryable)) result = undefined
    }
    this.#clock.clearTimeout(attending)
    attending = null
    if (result === null) return
    // A run that still has to sleep was woken too early, by the clock of this process.
    const leftMs = result?.stopped ? (result.waitMs ?? 0) : result?.wakeMs
    // This process last attended to the firing about `attendedMs` before `at`. A wait begins at that moment, so that another process
    // can finish it.
    const to = leftMs === undefined ? null : at - attendedMs + leftMs
    try {
      await this.#timers.move({ id, from: at, to })
    } catch (error) {
      this.#report(error, toPlace(options))
    }
  }

  /** Once: the timer stays, for a process that can read it, and is met with each look. */
  #reportDamaged(id: string, at: { schedule?: string; session?: string }): void {
    if (this.#damaged.has(id)) return
    this.#damaged.add(id)
    const message = `The timer '${id}' cannot be read: it is damaged, or a newer Statewright wrote it. It is skipped.`
    this.#report(new StoreError('corrupt_log', message, id), at)
  }

  #report(error: unknown, at: { schedule?: string; session?: string }): void {
    try {
      this.#onError(error, at)
    } catch {
      // What listens must not stop the others' schedules.
    }
  }
}

/** A time from which all that are needed follow: those of the last minute, or the last one. */
function skipMissed(
  occurrences: Occurrences,
  { at, now, catchUp }: Pick<StoredTimer, 'at'> & { now: number; catchUp: CatchUp },
): number | null {
  for (let spanMs = graceMs; now - spanMs > at; spanMs *= 2) {
    const next = occurrences.findNext(now - spanMs - 1)
    if (catchUp === 'none' || (next !== null && next <= now)) return next
  }
  return at
}

function chooseFirings(due: readonly number[], now: number, catchUp: CatchUp): readonly number[] {
  return catchUp === 'none' ? due.filter((time) => now - time <= graceMs) : due
}

/** Its session: there is one for each time of a schedule, so a firing exists once. */
const createFiringId = (schedule: string, time: number): string =>
  `${schedule}@${new Date(time).toISOString().replace('.000Z', 'Z')}`

function parseFiring(data: string): Firing | null {
  try {
    const { agent, input, tags } = JSON.parse(data) as Firing
    return typeof agent === 'string' ? { agent, input, tags } : null
  } catch {
    return null
  }
}

const toPlace = ({ session, tags }: RunSessionOptions): { schedule?: string; session: string } => ({
  session,
  ...(tags?.['schedule'] !== undefined && { schedule: tags['schedule'] }),
})

function warn(error: unknown, { schedule, session }: { schedule?: string; session?: string }): void {
  const where = [schedule && `schedule '${schedule}'`, session && `session '${session}'`]
    .filter(Boolean)
    .join(', ')
  const what = error instanceof Error ? error.message : String(error)
  process.emitWarning(`${where === '' ? 'The scheduler' : where}: ${what}`, { type: 'StatewrightWarning' })
}

function checkNumber(key: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isFinite(value) && value >= least)) return
  throw new UsageError('invalid_option', `createScheduler: ${key} must be a number from ${least}.`, key)
}
