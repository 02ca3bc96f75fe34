import { optionsRule, functionRule, expectArgument } from '../../core/base/values.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { createId } from '../../core/base/platform.js'
import { limitTime } from '../../core/base/abort.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { CheckFailure, checkSkippedNames } from '../check-assertions.js'
import { anyOrderChecks, crowdChecks } from './crowd-checks.js'
import { inboxChecks, timerChecks } from './inbox-checks.js'
import { leaseChecks } from './lease-checks.js'
import { listChecks } from './list-checks.js'
import { logChecks } from './log-checks.js'
import { ownerChecks } from './owner-checks.js'
import {
  type Ability,
  leaseRequest,
  type StoreCheckSpec,
  type CheckTime,
  createGivenTime,
  createOwnTime,
} from './store-scene.js'

/** Where a store is to be opened for a check. Nothing is there yet. */
export interface StorePlace {
  /** Another for every check, in small letters, digits and `_`: the name of a folder, a schema, a prefix of keys. */
  place: string
  /** What the store is to take for the time, in milliseconds since the epoch. A store that goes by a clock of its own leaves it. */
  now: () => number
}

/** What came of one check. */
export interface StoreCheck {
  /** What is promised: `the log is read as it was written, in order, over several appends`, … */
  name: string
  outcome: 'kept' | 'broken' | 'skipped'
  /** What should be and what is, or why it was skipped; null for what is kept. */
  problem: string | null
}

/** What a store keeps of what sessions count on. */
export interface StoreReport {
  /** Whether the store went by the clock that it was given, or by one of its own, which was waited for. */
  clock: 'given' | 'own'
  checks: StoreCheck[]
  /** Those of them that are broken, each as a sentence: what a test expects to be empty. */
  broken: string[]
}

/** How stores are checked. */
export interface CheckStoreOptions {
  /** Whether stores that are opened at one place see the same sessions. Default: true. */
  shared?: boolean | undefined
  /** Checks by name that make no sense for the store, and why. */
  skip?: Record<string, string> | undefined
  /** Clears away what a check has left at a place, after its stores are closed. */
  remove?: ((place: string) => unknown) | undefined
  /** How long a check may take, in milliseconds. Default: 60 000. */
  withinMs?: number | undefined
  /** How long a short lease lasts for a store that goes by a clock of its own, in milliseconds; ten questions have to find room in it. Default: 500. */
  leaseMs?: number | undefined
  /** What the choices of checks begin with that make them at random: the same are made again. Default: 1. */
  seed?: number | undefined
}

/** All that is promised. */
export const storeChecks: readonly StoreCheckSpec[] = [
  ...logChecks,
  ...leaseChecks,
  ...listChecks,
  ...ownerChecks,
  ...inboxChecks,
  ...timerChecks,
  ...crowdChecks,
  ...anyOrderChecks,
]

/**
 * Checks a `SessionStore` against what sessions count on: records, leases, the list, deleting, the inbox, timers, many writers at once,
 * and several stores at one place. `open` is given a place where nothing is yet, and a clock, and makes the store; a check
 * opens several at its place. What a store may leave out is skipped where it does (`renewAll`, `setTitle`, `purge`, `timers`, `inbox`, its `findUnread` and `listUnread`).
 *
 * @example
 * const { broken } = await checkStore(({ now }) => memoryStore({ now }), { shared: false })
 * if (broken.length > 0) throw new Error(broken.join('\n'))
 *
 * @throws StatewrightError `bad_option` for a name in `skip` that no check has, or options that make no sense
 */
export async function checkStore(
  open: (place: StorePlace) => SessionStore | Promise<SessionStore>,
  options: CheckStoreOptions = {},
): Promise<StoreReport> {
  expectArgument('checkStore(open)', open, functionRule('a function that opens the store'))
  expectArgument('checkStore(open, options)', options, optionsRule)
  const { skip = {} } = options
  checkSkippedNames(Object.keys(skip), storeChecks)
  const checker = new StoreChecker(open, options)
  const report: StoreReport = { clock: await checker.detectClock(), checks: [], broken: [] }
  for (const check of storeChecks) {
    const { name } = check
    const why = skip[name]
    const found: StoreCheck =
      why === undefined ? await checker.runCheck(check) : { name, outcome: 'skipped', problem: why }
    report.checks.push(found)
    if (found.outcome === 'broken') report.broken.push(`${name}: ${found.problem}.`)
  }
  return report
}

/** Runs checks one by one, each at a place of its own. */
export class StoreChecker {
  readonly #open: (place: StorePlace) => SessionStore | Promise<SessionStore>
  readonly #options: CheckStoreOptions
  readonly #withinMs: number
  readonly #leaseMs: number
  #makeTime: Promise<() => CheckTime> | null = null

  constructor(
    open: (place: StorePlace) => SessionStore | Promise<SessionStore>,
    options: CheckStoreOptions = {},
  ) {
    if (typeof open !== 'function')
      throw badOptionError('open', 'is a function that makes a store: ({ place, now }) => yourStore(…)')
    this.#open = open
    this.#options = options
    this.#withinMs = checkDuration('withinMs', options.withinMs ?? 60_000)
    this.#leaseMs = checkDuration('leaseMs', options.leaseMs ?? 500)
  }

  async detectClock(): Promise<'given' | 'own'> {
    return (await this.#createTime()).isGiven ? 'given' : 'own'
  }

  async runCheck(check: StoreCheckSpec): Promise<StoreCheck> {
    const time = await this.#createTime()
    const { name } = check
    const { shared = true, seed = 1 } = this.#options
    let skipped: string | null = null
    const problem = await this.#useStores(time, async (open) => {
      const store = await open()
      skipped = check.needs === undefined ? null : explainMissing(check.needs, store, shared)
      if (skipped === null) await check.run({ store, open, time, seed })
    })
    if (problem !== null) return { name, outcome: 'broken', problem }
    return { name, outcome: skipped === null ? 'kept' : 'skipped', problem: skipped }
  }

  /** Detected once from the expiry of a lease; if that fails, the checks report the problem. */
  async #createTime(): Promise<CheckTime> {
    this.#makeTime ??= this.#detectTime()
    return (await this.#makeTime)()
  }

  async #detectTime(): Promise<() => CheckTime> {
    let ahead: number | null = null
    await this.#useStores(createGivenTime(), async (open) => {
      const { expiresAt } = await (await open()).acquire('clock', leaseRequest)
      const [given, own] = [createGivenTime().now(), Date.now()].map(
        (now) => expiresAt - leaseRequest.ttlMs - now,
      )
      if (given !== undefined && own !== undefined && Math.abs(own) < Math.abs(given)) ahead = own
    })
    const found: number | null = ahead
    return found === null ? createGivenTime : () => createOwnTime(this.#leaseMs, found)
  }

  /** Runs `work` with stores at a new place; returns the problem, or null. */
  async #useStores(
    time: CheckTime,
    work: (open: () => Promise<SessionStore>) => Promise<void>,
  ): Promise<string | null> {
    const place = `check_${createId().replaceAll('-', '')}`
    const opened: SessionStore[] = []
    const open = async () => {
      const store = await this.#open({ place, now: time.now })
      opened.push(store)
      return store
    }
    const problem =
      (await this.#findProblem(work(open))) ??
      (await this.#findProblem(Promise.all(opened.map(async (store) => store.close()))))
    if (problem !== null)
      await Promise.allSettled(opened.map((store) => this.#findProblem(closeStore(store))))
    await this.#options.remove?.(place)
    return problem
  }

  async #findProblem(work: Promise<unknown>): Promise<string | null> {
    const ms = this.#withinMs
    try {
      await limitTime({ ms, late: () => new CheckFailure(`it took longer than ${ms} ms`) }, work)
      return null
    } catch (error) {
      const words = describeError(error).replace(/\.$/, '')
      return error instanceof CheckFailure ? error.message : `it failed: ${words}`
    }
  }
}

const closeStore = async (store: SessionStore): Promise<void> => store.close()

/** Why a check makes no sense for a store; null when it does. */
function explainMissing(ability: Ability, store: SessionStore, shared: boolean): string | null {
  if (ability === 'shared') return shared ? null : 'shared is false: each store has sessions of its own'
  if (ability === 'purge') return store.purge ? null : 'the store has no purge'
  if (ability === 'setTitle') return store.setTitle ? null : 'the store has no setTitle'
  if (ability === 'renewAll') return store.renewAll ? null : 'the store has no renewAll'
  if (ability === 'timers') return store.timers ? null : 'the store has no timers'
  if (!store.inbox) return 'the store has no inbox'
  return ability === 'inbox' || store.inbox[ability] ? null : `the inbox has no ${ability}`
}

function checkDuration(key: string, ms: number): number {
  if (Number.isFinite(ms) && ms > 0) return ms
  throw badOptionError(key, 'is a number of milliseconds above 0')
}

function badOptionError(key: string, what: string): StatewrightError {
  return new StatewrightError('bad_option', `checkStore: ${key} ${what}.`, key)
}
