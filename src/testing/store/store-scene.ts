import { describeError, UsageError } from '../../core/base/errors.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { SessionInbox } from '../../core/sessions/store/inbox.js'
import type { SessionTimers } from '../../core/sessions/store/timers.js'
import type { Lease, LogRecord, SessionStore, SessionSummary } from '../../core/sessions/store/store.js'
import { CheckFailure, expectSame, expectTrue, formatValue } from '../check-assertions.js'
import { systemClock } from '../../core/base/clock.js'

/** The vocabulary of the checks, which import this module as `t`. */
export { expectSame as same, expectTrue as ok, formatValue as show }

export interface StoreScene {
  store: SessionStore
  /** The store's optional parts. Missing only in checks that do not need them. */
  inbox: SessionInbox
  timers: SessionTimers
  open: () => Promise<SessionStore>
  time: CheckTime
  seed: number
}

export type StoreChecks = Readonly<Record<string, (scene: StoreScene) => Promise<void>>>

/** `shared` means that stores at one place have the same sessions. */
export type Ability =
  | 'inbox'
  | 'findUnread'
  | 'listUnread'
  | 'renewAll'
  | 'setTitle'
  | 'setMark'
  | 'purge'
  | 'shared'
  | 'timers'

export function record(
  seq: number,
  data = JSON.stringify({ seq }),
  type: LogRecord['type'] = 'event',
): LogRecord {
  return { seq, at: 1_700_000_000_000 + seq, type, data, check: `check-${seq}` }
}

export const records = (from: number, to: number): LogRecord[] =>
  Array.from({ length: to - from + 1 }, (_, index) => record(from + index))

export const summary = (title: string): SessionSummary => ({
  title,
  state: 'RUNNING',
  reason: null,
  runs: 1,
  messages: 2,
  totalTokens: 3,
  cost: null,
})

export const seqs = (records: readonly { seq: number }[]): number[] => records.map(({ seq }) => seq)

export const numbers = (messages: readonly { message: number }[]): number[] =>
  messages.map(({ message }) => message)

export const ids = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id)

export const leaseRequest = { holder: 'run 1', ttlMs: 60_000 }

export const add = async (store: SessionStore, lease: Lease, seq: number) =>
  store.append(lease, [record(seq)])

export const hold = async (
  store: SessionStore,
  id = 's',
  request: Partial<typeof leaseRequest> = {},
): Promise<Lease> => store.acquire(id, { ...leaseRequest, ...request })

/** Ids that no session has. They must not break a query. */
export const strangeIds = ['', "s' OR 1=1 --", '\u0000', '../s', 'é'.repeat(300)]

/** Usage errors are for invalid arguments, store errors for conflicts with stored data. */
type RefusalCode =
  | StoreError['code']
  | 'invalid_record'
  | 'invalid_lease'
  | 'invalid_session'
  | 'invalid_option'

/** The error with which a call ends. @throws CheckFailure for any other error, or if the call succeeds */
export async function refused(
  what: string,
  code: RefusalCode,
  work: () => unknown,
): Promise<StoreError | UsageError> {
  const kind = code.startsWith('invalid_') ? UsageError : StoreError
  let answer: unknown
  try {
    answer = await work()
  } catch (error) {
    if (error instanceof kind && error.code === code) return error
    const found = error instanceof Error ? `${error.name} ${codeOf(error)}` : typeof error
    const words = describeError(error).replace(/\.$/, '')
    throw new CheckFailure(
      `${what} should be refused with a ${kind.name} ${code}, but was refused with ${found.trim()}: ${words}`,
    )
  }
  throw new CheckFailure(
    `${what} should be refused with a ${kind.name} ${code}, but was answered with ${formatValue(answer)}`,
  )
}

export const held = (what: string, work: () => unknown) => refused(what, 'session_busy', work)

export const lost = (what: string, work: () => unknown) => refused(what, 'lease_lost', work)

export async function busy(what: string, holder: string, work: () => unknown) {
  const error = await refused(what, 'session_busy', work)
  expectTrue(
    error.message.includes(holder),
    `the session_busy message should name the lease owner, '${holder}', but is ${formatValue(error.message)}`,
  )
  return error
}

export async function write(
  store: SessionStore,
  id: string,
  more: Partial<SessionSummary> = {},
  isHeld = false,
): Promise<void> {
  const lease = await hold(store, id)
  await store.append(lease, [record(1)], { ...summary(id), ...more })
  if (!isHeld) await store.release(lease)
}

export const codeOf = (error: unknown): string =>
  error instanceof Error ? String(Reflect.get(error, 'code') ?? '') : ''

/** Time in hundredths of a short lease: a millisecond of the given clock, or a wait with a store's own clock. */
export interface CheckTime {
  readonly isGiven: boolean
  readonly now: () => number
  readonly ms: (hundredths: number) => number
  readonly pass: (hundredths: number) => Promise<void>
  /** Lets the time pass, except for the last millisecond. With a store's own clock, lets only half of the time pass. */
  readonly passAlmost: (hundredths: number) => Promise<void>
  /** Compares two moments, allowing for a store that has its own clock. @throws CheckFailure */
  readonly same: (what: string, found: number, wanted: number) => void
}

export function createGivenTime(): CheckTime {
  let now = 1_700_000_000_000
  return {
    isGiven: true,
    now: () => now,
    ms: (hundredths) => hundredths,
    pass: async (hundredths) => void (now += hundredths),
    passAlmost: async (hundredths) => void (now += hundredths - 1),
    same: expectSame,
  }
}

export function createOwnTime(leaseMs: number, ahead: number): CheckTime {
  const now = () => systemClock.now() + ahead
  const ms = (hundredths: number) => Math.ceil((hundredths * leaseMs) / 100)
  const sleep = async (delay: number) =>
    new Promise<void>((resolve) => void systemClock.setTimeout(resolve, delay))
  return {
    isGiven: false,
    now,
    ms,
    // Platform timers may fire a millisecond early.
    pass: async (hundredths) => sleep(ms(hundredths) + 2),
    passAlmost: async (hundredths) => sleep(ms(hundredths / 2)),
    same(what, found, wanted) {
      if (!(Math.abs(found - wanted) <= leaseMs))
        throw new CheckFailure(`${what} should be about ${wanted}, but is ${found}`)
    },
  }
}
