import { optionsRule, functionRule, expectArgument } from '../../core/base/values.js'
import { StatewrightError } from '../../core/base/errors.js'
import { createId } from '../../core/base/platform.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import {
  type CheckReport,
  type CheckResult,
  checkNames,
  findCheckProblem,
  runChecks,
} from '../check-assertions.js'
import { anyOrderChecks, crowdChecks, sharedChecks } from './crowd-checks.js'
import { findUnreadChecks, inboxChecks, listUnreadChecks, timerChecks } from './inbox-checks.js'
import { leaseChecks, renewAllChecks } from './lease-checks.js'
import { listChecks, markChecks, ownerChecks, purgeChecks, titleChecks } from './list-checks.js'
import { logChecks } from './log-checks.js'
import {
  type Ability,
  leaseRequest,
  type StoreChecks,
  type StoreScene,
  type CheckTime,
  createGivenTime,
  createOwnTime,
} from './store-scene.js'

/** An empty location for the store of one check. */
export interface StorePlace {
  /**
   * The name of the location, which is unique for each check and consists of lower-case letters, digits and `_`. Use it
   * as a folder, schema or key prefix.
   */
  place: string
  /** The clock for the store, in milliseconds since the epoch. A store with its own clock ignores it. */
  now: () => number
}

export interface StoreReport extends CheckReport {
  /** Whether the store used the given clock or its own. */
  clock: 'given' | 'own'
}

/** Options for `checkStore`. */
export interface CheckStoreOptions {
  /** Whether stores opened at one place share sessions. Defaults to true. */
  shared?: boolean | undefined
  /** Checks to skip by name, with the reason. */
  skip?: Record<string, string> | undefined
  /** Cleans up a place after its stores are closed. */
  remove?: ((place: string) => unknown) | undefined
  /** Time limit per check in milliseconds. Defaults to 60 000. */
  withinMs?: number | undefined
  /**
   * Duration of short leases for a store with its own clock, in milliseconds. The duration must be long enough for ten
   * requests. Defaults to 500.
   */
  leaseMs?: number | undefined
  /** Seed for the random checks. Defaults to 1. */
  seed?: number | undefined
}

interface StoreCheckSpec {
  name: string
  needs: Ability | undefined
  run: StoreChecks[string]
}

const tables: readonly [checks: StoreChecks, needs?: Ability][] = [
  [logChecks],
  [leaseChecks],
  [renewAllChecks, 'renewAll'],
  [listChecks],
  [purgeChecks, 'purge'],
  [titleChecks, 'setTitle'],
  [markChecks, 'setMark'],
  [ownerChecks],
  [inboxChecks, 'inbox'],
  [findUnreadChecks, 'findUnread'],
  [listUnreadChecks, 'listUnread'],
  [timerChecks, 'timers'],
  [crowdChecks],
  [sharedChecks, 'shared'],
  [anyOrderChecks],
]

export const storeChecks: readonly StoreCheckSpec[] = tables.flatMap(([checks, needs]) =>
  Object.entries(checks).map(([name, run]) => ({ name, needs, run })),
)

/**
 * Checks a `SessionStore` against the requirements of sessions: records, leases, the list, deletion, the inbox, timers,
 * concurrent writers, and several stores at one place. `open` creates a store at an empty place. A check may open
 * several. Optional methods (`renewAll`, `setTitle`, `setMark`, `purge`, `timers`, `inbox`, and `findUnread` and
 * `listUnread` of the inbox) are skipped if missing.
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
  checkNames(
    'skip',
    Object.keys(skip),
    storeChecks.map(({ name }) => name),
  )
  const checker = createStoreChecker(open, options)
  const report: StoreReport = { clock: await checker.detectClock(), checks: [], broken: [] }
  await runChecks(
    report,
    storeChecks,
    ({ name }) => skip[name],
    (check) => checker.runCheck(check),
  )
  return report
}

export function createStoreChecker(
  openStore: (place: StorePlace) => SessionStore | Promise<SessionStore>,
  options: CheckStoreOptions = {},
) {
  const { shared = true, seed = 1 } = options
  const withinMs = checkDuration('withinMs', options.withinMs ?? 60_000)
  const leaseMs = checkDuration('leaseMs', options.leaseMs ?? 500)
  let found: Promise<() => CheckTime> | null = null

  /** Detects the clock once from the expiry of a lease. If that fails, the checks report the problem. */
  async function createTime(): Promise<CheckTime> {
    found ??= detectTime()
    return (await found)()
  }

  async function detectTime(): Promise<() => CheckTime> {
    let createFound = createGivenTime
    await useStores(createGivenTime(), async (open) => {
      const { expiresAt } = await (await open()).acquire('clock', leaseRequest)
      const startedAt = expiresAt - leaseRequest.ttlMs
      const ahead = startedAt - Date.now()
      if (Math.abs(ahead) < Math.abs(startedAt - createGivenTime().now()))
        createFound = () => createOwnTime(leaseMs, ahead)
    })
    return createFound
  }

  async function useStores(
    time: CheckTime,
    work: (open: () => Promise<SessionStore>) => Promise<void>,
  ): Promise<string | null> {
    const place = `check_${createId().replaceAll('-', '')}`
    const opened: SessionStore[] = []
    const open = async () => {
      const store = await openStore({ place, now: time.now })
      opened.push(store)
      return store
    }
    const problem = await findCheckProblem(withinMs, work(open))
    const closing = opened.map((store) => findCheckProblem(withinMs, closeStore(store)))
    const closeProblem = (await Promise.all(closing)).find((found) => found !== null)
    await options.remove?.(place)
    return problem ?? closeProblem ?? null
  }

  return {
    detectClock: async (): Promise<'given' | 'own'> => ((await createTime()).isGiven ? 'given' : 'own'),
    async runCheck({ needs, run }: StoreCheckSpec): Promise<Omit<CheckResult, 'name'>> {
      const time = await createTime()
      let skipped: string | null = null
      const problem = await useStores(time, async (open) => {
        const store = await open()
        skipped = needs === undefined ? null : explainMissing(needs, store, shared)
        if (skipped !== null) return
        const { inbox, timers } = store as SessionStore & Pick<StoreScene, 'inbox' | 'timers'>
        await run({ store, inbox, timers, open, time, seed })
      })
      if (problem !== null) return { outcome: 'broken', problem }
      return { outcome: skipped === null ? 'kept' : 'skipped', problem: skipped }
    },
  }
}

const closeStore = async (store: SessionStore): Promise<void> => store.close()

function explainMissing(ability: Ability, store: SessionStore, shared: boolean): string | null {
  if (ability === 'shared') return shared ? null : 'shared is false, so each store has separate sessions'
  if (ability !== 'findUnread' && ability !== 'listUnread')
    return store[ability] ? null : `the store has no ${ability}`
  if (!store.inbox) return 'the store has no inbox'
  return store.inbox[ability] ? null : `the inbox has no ${ability}`
}

function checkDuration(key: string, ms: number): number {
  if (Number.isFinite(ms) && ms > 0) return ms
  const text = `checkStore: ${key} must be a positive number of milliseconds.`
  throw new StatewrightError('bad_option', text, key)
}
