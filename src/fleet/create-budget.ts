import { expectArgument, limitTotal, objectRule } from '../core/base/values.js'
import { createTicker, systemClock, toWholeClock, type Clock, readElapsed } from '../core/base/clock.js'
import { runInTurn } from '../core/base/maybe-promise.js'
import { createId, loadOnce } from '../core/base/platform.js'
import { describeError, configError } from '../core/base/errors.js'
import { limitTime, CallAbort, createNap, onAbort } from '../core/base/abort.js'
import {
  BudgetError,
  type BudgetReservation,
  type BudgetStatus,
  type SharedAmount,
  type SharedBudget,
} from '../core/budgets/shared-budget.js'
import type {
  BudgetAmount,
  BudgetStore,
  ReserveAnswer,
  StoredBudget,
  SettleOptions,
} from '../core/budgets/budget-store.js'
import { fitsAllowance, isInWindow, nothing, forgottenMs } from '../core/budgets/ledger.js'
import { warnUnsettled } from '../core/budgets/reserve-in-all.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import {
  type BudgetTerms,
  type BudgetWindow,
  describeTerms,
  findWindow,
  formatTerms,
  fromNanoUsd,
  parseTerms,
  type CreateBudgetOptions,
  readTerms,
  toAllowance,
  toNanoUsd,
} from './budget-limits.js'

/** Timeout for a store call, in milliseconds. */
const answerMs = 30_000

interface Asked {
  amount: BudgetAmount
  onUnsettled: (message: string) => void
}

/**
 * A budget shared by runs, processes and machines. The worst case is reserved before each request, and the unused
 * part is returned afterwards, so spending never exceeds the limits.
 *
 * @example
 * const tenant = createBudget({ id: 'tenant-acme', usd: 20, per: 'day', store: memoryStore() })
 * const { left } = await tenant.status() // { usd: 20 }
 * @throws {ConfigError | UsageError} for an invalid option. The error names the option
 */
export function createBudget(options: CreateBudgetOptions): SharedBudget {
  expectArgument(
    'createBudget(options)',
    options,
    objectRule([], "an object: { id: 'tenant-acme', usd: 20, per: 'day', store }"),
  )
  const terms = readTerms(options)
  const { id, leaseMs = 60_000, lostReservations = 'spent', onEmpty = 'end' } = options
  const clock = toWholeClock(options.clock ?? systemClock)
  const open = createOpener(options.store)
  const ask = <Value>(
    what: string,
    work: (store: BudgetStore) => Value | Promise<Value>,
    onLate?: () => void,
  ): Promise<Value> => {
    const message = `The budget store did not respond to ${what}() within ${answerMs} ms. Check that it is reachable. No request can start until it responds.`
    const late = (): StoreError => new StoreError('store_unavailable', message)
    return limitTime({ ms: answerMs, clock, late, onLate }, (async () => work(await open()))())
  }
  const text = formatTerms(terms)
  const allowance = toAllowance(terms)
  const leases = keepReservations({
    clock,
    leaseMs,
    renew: (ids) => ask('renew', (store) => store.renew(ids, leaseMs)),
    settle: (settlement) => ask('settle', (store) => store.settle({ budget: id, ...settlement })),
  })
  /** Offset of the store's clock from this process. Windows follow the store's clock. */
  let offsetMs = 0
  const findWindowAt = (now: number): BudgetWindow => findWindow(now, terms.per, terms.timezone)
  const readStored = <Stored extends StoredBudget>(stored: Stored): Stored => {
    checkStored(id, stored)
    offsetMs = stored.now - clock.now()
    return stored
  }

  const tryOnce = async ({ amount, onUnsettled }: Asked): Promise<BudgetReservation | null> => {
    const reservation = createId()
    const own = {
      budget: id,
      terms: text,
      allowance,
      ttlMs: leaseMs,
      countsLost: lostReservations === 'spent',
    }
    const reserveIn = async (window: BudgetWindow) => {
      const options = { ...own, ...window, ...amount, reservation }
      const release = () => leases.abandon(reservation)
      try {
        return readStored(await ask('reserve', (store) => store.reserve(options), release))
      } catch (error) {
        // The store may have reserved the amount although its response was lost.
        release()
        throw error
      }
    }
    let window = findWindowAt(clock.now() + offsetMs)
    let answer = await reserveIn(window)
    if (!answer.granted && !isInWindow(answer.now, window)) {
      window = findWindowAt(answer.now)
      answer = await reserveIn(window)
    }
    if (answer.granted) {
      leases.add(reservation)
      return { settle: (paid) => settle(reservation, amount, paid, onUnsettled) }
    }
    // The window ended in the meantime, so the line retries.
    if (!isInWindow(answer.now, window)) return null
    if (answer.terms !== text) throw conflictError(id, terms, answer.terms)
    const fits = (spent: BudgetAmount): boolean =>
      fitsAllowance({ spent, reserved: nothing }, amount, allowance)
    if (!fits(answer.spent)) {
      // An amount larger than a whole window is refused at once.
      const { windowEndsAt: resetsAt } = window
      const isWaiting = onEmpty === 'wait' && resetsAt !== null && fits(nothing)
      const waitMs = isWaiting ? Math.max(1, resetsAt - answer.now) : null
      throw exceededError(id, terms, answer, amount, { resetsAt, waitMs })
    }
    return null
  }

  const line = createWaitingLine<Asked, BudgetReservation>(clock, tryOnce, (late) =>
    late.settle({ usd: 0, tokens: 0 }),
  )

  const settle = async (
    reservation: string,
    reserved: BudgetAmount,
    { usd, tokens }: SharedAmount,
    onUnsettled: (message: string) => void,
  ): Promise<void> => {
    const paid = toUnits('settle', { usd: usd ?? 0, tokens: tokens ?? 0 })
    if (usd == null) paid.nanoUsd = reserved.nanoUsd
    if (tokens == null) paid.tokens = reserved.tokens
    await leases.settle(reservation, paid, (error) =>
      onUnsettled(
        `The store for budget '${id}' rejected a settlement, so it will be retried: ${describeError(error)}`,
      ),
    )
    line.wake()
  }

  return {
    id,
    store: options.store,
    needsPrice: terms.usd !== null,
    reserveOutputTokens: options.reserveOutputTokens ?? 8192,

    async reserve(amount, { signal, onUnsettled = warnUnsettled } = {}) {
      expectArgument('reserve(amount)', amount, objectRule([], 'an object: { usd: 0.02, tokens: 3000 }'))
      return line.join({ amount: toAmount(id, terms, amount), onUnsettled }, signal)
    },

    async status() {
      const [stored] = await ask('list', (store) => store.list(id))
      if (stored && stored.terms !== text) throw conflictError(id, terms, stored.terms)
      if (stored) readStored(stored)
      return toStatus(id, terms, stored ?? null, findWindowAt(clock.now() + offsetMs))
    },

    async replaceLimits() {
      await ask('replaceTerms', (store) => store.replaceTerms(id, text))
      line.wake()
    },
  }
}

function toAmount(id: string, terms: BudgetTerms, { usd = 0, tokens = 0 }: SharedAmount): BudgetAmount {
  if (usd === null && terms.usd !== null) {
    throw new BudgetError(
      'unknown_price',
      `The budget '${id}' is in USD, but this request's price is unknown. Set it in prices: { … }, or limit tokens instead of usd.`,
      id,
    )
  }
  return toUnits('reserve', { usd: usd ?? 0, tokens: tokens ?? 0 })
}

/** @throws {ConfigError} */
function toUnits(call: 'reserve' | 'settle', amount: { usd: number; tokens: number }): BudgetAmount {
  for (const [key, value] of Object.entries(amount)) {
    if (Number.isFinite(value) && value >= 0) continue
    throw configError(`${call}({ ${key} }) must be a non-negative number (got ${String(value)}).`, key)
  }
  return { nanoUsd: toNanoUsd(amount.usd), tokens: limitTotal(amount.tokens) }
}

/** @throws {StoreError} `corrupt_log` for a damaged row in the store */
function checkStored(id: string, { spent, reserved, live, windowAt, now, terms }: StoredBudget): void {
  const numbers = {
    'spent.nanoUsd': spent?.nanoUsd,
    'spent.tokens': spent?.tokens,
    'reserved.nanoUsd': reserved?.nanoUsd,
    'reserved.tokens': reserved?.tokens,
    live,
    windowAt,
    now,
  }
  const isTime = (key: string): boolean => key === 'windowAt' || key === 'now'
  const wrong = Object.entries(numbers).find(
    ([key, value]) => !Number.isSafeInteger(value) || (value < 0 && !isTime(key)),
  )
  if (wrong === undefined && typeof terms === 'string') return
  const [key, value] = wrong ?? ['terms', terms]
  throw new StoreError(
    'corrupt_log',
    `The row for the budget '${id}' is damaged: its store returned ${String(value)} for ${key}. Repair or remove the row.`,
    id,
  )
}

/** The budget's status. Amounts stored for an earlier window no longer count. */
function toStatus(
  id: string,
  { usd, tokens }: BudgetTerms,
  stored: StoredBudget | null,
  { windowAt, windowEndsAt }: BudgetWindow,
): BudgetStatus {
  const isOver = stored === null || stored.windowAt < windowAt
  const { spent, reserved, live } = isOver ? { spent: nothing, reserved: nothing, live: 0 } : stored
  const left = (most: number, used: number): number => Math.max(0, Number((most - used).toPrecision(12)))
  return {
    id,
    limits: { ...(usd !== null && { usd }), ...(tokens !== null && { tokens }) },
    windowAt: windowEndsAt === null ? null : windowAt,
    resetsAt: windowEndsAt,
    spent: { usd: fromNanoUsd(spent.nanoUsd), tokens: spent.tokens },
    reserved: { usd: fromNanoUsd(reserved.nanoUsd), tokens: reserved.tokens },
    left: {
      ...(usd !== null && { usd: left(usd, fromNanoUsd(spent.nanoUsd + reserved.nanoUsd)) }),
      ...(tokens !== null && { tokens: left(tokens, spent.tokens + reserved.tokens) }),
    },
    live,
  }
}

/** Opens the budget store once, and again after a failure. */
function createOpener(store: unknown): () => Promise<BudgetStore> {
  const candidate = (store ?? {}) as Partial<SessionStore & BudgetStore>
  const isOwn = typeof candidate.reserve === 'function' && typeof candidate.settle === 'function'
  const openBudgets = isOwn ? () => candidate as BudgetStore : candidate.openBudgets
  if (typeof openBudgets !== 'function') {
    const hint = store instanceof Promise ? ' It is a promise. Await it first.' : ''
    throw configError(
      `The store option of createBudget must be a store that supports budgets: memoryStore(), fileStore(), postgresStore(), or a custom BudgetStore.${hint}`,
      'store',
    )
  }
  return loadOnce(async () => openBudgets())
}

function conflictError(id: string, here: BudgetTerms, stored: string): BudgetError {
  const there = parseTerms(stored)
  return new BudgetError(
    'budget_conflict',
    `The budget '${id}' has the limits ${there ? describeTerms(there) : stored} in its store, but ${describeTerms(here)} here. ` +
      'Use the same limits in every process, or call replaceLimits() once to change the stored limits.',
    id,
  )
}

function exceededError(
  id: string,
  terms: BudgetTerms,
  { spent }: ReserveAnswer,
  amount: BudgetAmount,
  when: { resetsAt: number | null; waitMs: number | null },
): BudgetError {
  const allowance = toAllowance(terms)
  const { nanoUsd, tokens } = allowance
  const isUsd = nanoUsd !== null && spent.nanoUsd + amount.nanoUsd > nanoUsd
  const words = isUsd
    ? `${fromNanoUsd(spent.nanoUsd)} of ${terms.usd} USD has been spent, and the request may cost up to ${fromNanoUsd(amount.nanoUsd)}`
    : `${spent.tokens} of ${tokens} tokens have been spent, and the request may use up to ${amount.tokens}`
  const next = !fitsAllowance({ spent: nothing, reserved: nothing }, amount, allowance)
    ? 'This request alone exceeds the limit. Raise the limit with replaceLimits(), or lower sampling.maxTokens.'
    : when.resetsAt === null
      ? 'Raise its limit with replaceLimits() to continue.'
      : `It resets at ${new Date(when.resetsAt).toISOString()}.`
  return new BudgetError('budget_exceeded', `The budget '${id}' is used up: ${words}. ${next}`, id, when)
}

/** A budget in a store, with a readable description of its limits. */
export interface BudgetRow extends BudgetStatus {
  terms: string
}

/** The budgets in a store, by id. Damaged rows are omitted and reported. */
export interface StoredBudgets {
  rows: BudgetRow[]
  /** One `corrupt_log` error for each damaged row. */
  damaged: StoreError[]
}

/** The current status of all budgets in a store. @throws {StoreError} `store_unavailable` without budgets */
export async function listStoredBudgets(store: Pick<SessionStore, 'openBudgets'>): Promise<StoredBudgets> {
  if (!store.openBudgets) throw new StoreError('store_unavailable', 'This store does not support budgets.')
  const found: StoredBudgets = { rows: [], damaged: [] }
  for (const stored of await (await store.openBudgets()).list()) {
    try {
      found.rows.push(toRow(stored))
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      found.damaged.push(error)
    }
  }
  return found
}

function toRow(stored: StoredBudget): BudgetRow {
  const { budget, terms: text, now } = stored
  checkStored(budget, stored)
  const terms = parseTerms(text)
  if (terms === null) {
    throw new StoreError(
      'corrupt_log',
      `The limits of budget '${budget}' cannot be read: ${text.slice(0, 200)}`,
      budget,
    )
  }
  return {
    ...toStatus(budget, terms, stored, findWindow(now, terms.per, terms.timezone)),
    terms: describeTerms(terms),
  }
}

/** Poll interval for amounts released by other processes, in milliseconds. Local releases are noticed at once. */
const pollMs = 250

/**
 * A first-come, first-served queue for shares of an amount. Only the first waiter tries, so that no large
 * request starves. `tryOnce` resolves with null if no share is available, and rejects if none ever will be.
 */
function createWaitingLine<Asked, Granted>(
  clock: Clock,
  tryOnce: (request: Asked) => Promise<Granted | null>,
  giveBack: (granted: Granted) => void,
) {
  const turns = new Map<'waiting', Promise<unknown>>()
  const nap = createNap(clock)
  let isStale = false

  const waitForShare = async (request: Asked, abort: CallAbort): Promise<Granted | null> => {
    while (!abort.aborted) {
      isStale = false
      const granted = await tryOnce(request)
      if (granted !== null) return granted
      if (!isStale && !abort.aborted) await nap.sleep(pollMs, abort)
    }
    return null
  }

  const getShare = async (request: Asked, abort: CallAbort): Promise<Granted | null> =>
    (turns.size === 0 ? await tryOnce(request) : null) ??
    runInTurn(turns, 'waiting', () => waitForShare(request, abort))

  return {
    /** Resolves with the share. Rejects with the signal's reason when it aborts. */
    join: (request: Asked, signal: AbortSignal | undefined): Promise<Granted> =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted()
        const abort = new CallAbort()
        const leave = (): void => {
          abort.abort()
          reject(signal?.reason as Error)
        }
        const stop = signal && onAbort(signal, leave)
        getShare(request, abort)
          .finally(stop)
          .then((granted) => {
            // Decided in one step, because a share that nobody receives would stay reserved.
            if (!abort.aborted) return resolve(granted as Granted)
            return granted === null ? undefined : giveBack(granted)
          }, reject)
      }),
    /** Wakes the first waiter, because a share was returned. */
    wake(): void {
      isStale = true
      nap.wake()
    },
  }
}

interface ReservationParts {
  clock: Clock
  leaseMs: number
  renew: (reservations: string[]) => Promise<void>
  settle: (settlement: Omit<SettleOptions, 'budget'>) => Promise<void>
}

interface OpenSettlement {
  paid: BudgetAmount
  since: number
}

/**
 * Renews the reservations of this process while their requests are in flight. Failed settlements are reported, then
 * retried without renewal until the store forgets the reservation, because waiting runs would otherwise wait forever.
 */
function keepReservations({ clock, leaseMs, renew, settle }: ReservationParts) {
  /** The settlement of each reservation, or null while the request is in flight. */
  const held = new Map<string, OpenSettlement | null>()
  let isRetrying = false

  const trySettle = async (
    reservation: string,
    open: OpenSettlement,
    report: (error: unknown) => void = () => undefined,
  ): Promise<boolean> => {
    let isSettled = true
    try {
      await settle({ reservation, ...open.paid })
    } catch (error) {
      isSettled = readElapsed(clock) - open.since >= forgottenMs
      report(error)
    }
    // A reservation can be abandoned again, because its late answer comes after the time limit.
    if (isSettled && held.get(reservation) === open) held.delete(reservation)
    ticker.stop()
    return isSettled
  }

  /** Stops at the first failure, so that an unavailable store receives one request instead of many. */
  const retrySettlements = async (): Promise<void> => {
    if (isRetrying) return
    isRetrying = true
    for (const [reservation, open] of held) {
      if (open === null || held.get(reservation) !== open || (await trySettle(reservation, open))) continue
      // The next retry starts with another reservation, because the store may refuse only this one.
      if (held.delete(reservation)) held.set(reservation, open)
      break
    }
    isRetrying = false
  }

  const beat = async (): Promise<void> => {
    const working = [...held].filter(([, open]) => open === null).map(([reservation]) => reservation)
    void retrySettlements()
    try {
      if (working.length > 0) await renew(working)
    } catch {
      // Reservations that expire in the meantime count as lost until they are settled.
    }
  }

  const ticker = createTicker(clock, {
    getMs: () => leaseMs / 3,
    isNeeded: () => held.size > 0,
    // A call that hangs must not delay the other renewals.
    work: () => void beat(),
  })

  return {
    add(reservation: string): void {
      held.set(reservation, null)
      ticker.start()
    },
    /** Settles a reservation. Never rejects. `report` receives the error if the store rejects the settlement. */
    async settle(reservation: string, paid: BudgetAmount, report: (error: unknown) => void): Promise<void> {
      if (held.get(reservation) !== null) return
      const open = { paid, since: readElapsed(clock) }
      held.set(reservation, open)
      await trySettle(reservation, open, report)
    },
    /** Releases a reservation that the store may have, without a report. */
    abandon(reservation: string): void {
      const open = { paid: nothing, since: readElapsed(clock) }
      held.set(reservation, open)
      ticker.start()
      void trySettle(reservation, open)
    },
  }
}
