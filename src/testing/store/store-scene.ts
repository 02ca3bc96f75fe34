import { describeError, UsageError } from '../../core/base/errors.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { LogRecord, SessionStore, SessionSummary } from '../../core/sessions/store/store.js'
import { CheckFailure, formatValue, expectSame } from '../check-assertions.js'
import { systemClock } from '../../core/base/clock.js'

/** An empty place, and a store that is opened there. */
export interface StoreScene {
  store: SessionStore
  /** Another store at the same place. */
  open: () => Promise<SessionStore>
  time: CheckTime
  /** What the choices of checks begin with that make them at random. */
  seed: number
}

/** A check: its name, which is the promise; the ability that it needs; and its test. */
export interface StoreCheckSpec {
  name: string
  /** An optional ability: without it, the check is skipped. */
  needs?: Ability
  run(scene: StoreScene): Promise<void>
}

/** What a store may leave out; `shared`: that stores of one place see the same sessions. */
export type Ability =
  | 'inbox'
  | 'findUnread'
  | 'listUnread'
  | 'renewAll'
  | 'setTitle'
  | 'purge'
  | 'shared'
  | 'timers'

export function createRecord(
  seq: number,
  data = JSON.stringify({ seq }),
  type: LogRecord['type'] = 'event',
): LogRecord {
  return { seq, at: 1_700_000_000_000 + seq, type, data, check: `check-${seq}` }
}

export const createRecords = (from: number, to: number): LogRecord[] =>
  Array.from({ length: to - from + 1 }, (_, index) => createRecord(from + index))

export const createSummary = (title: string): SessionSummary => ({
  title,
  state: 'RUNNING',
  reason: null,
  runs: 1,
  messages: 2,
  totalTokens: 3,
  cost: null,
})

export const leaseRequest = { holder: 'run 1', ttlMs: 60_000 }

/** Ids that no session has, and that must not break a query. */
export const strangeIds = ['', "s' OR 1=1 --", '\u0000', '../s', 'é'.repeat(300)]

/** Codes of refusals: usage errors for invalid arguments, store errors that depend on the data. */
type RefusalCode =
  | StoreError['code']
  | 'invalid_record'
  | 'invalid_lease'
  | 'invalid_session'
  | 'invalid_option'

/** The error that a call ends with, thrown or rejected. @throws CheckFailure when it is another, or none */
export async function expectRefusal(
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
    const found = error instanceof Error ? `${error.name} ${getCode(error)}` : typeof error
    const words = describeError(error).replace(/\.$/, '')
    throw new CheckFailure(
      `${what} should be refused with a ${kind.name} ${code}, but was with ${found.trim()}: ${words}`,
    )
  }
  throw new CheckFailure(
    `${what} should be refused with a ${kind.name} ${code}, but was answered with ${formatValue(answer)}`,
  )
}

export const getCode = (error: unknown): string =>
  error instanceof Error ? String(Reflect.get(error, 'code') ?? '') : ''

/**
 * Time in checks, in hundredths of a short lease. On the clock that the store was given one of them is a millisecond that
 * passes at once; where a store goes by a clock of its own, it has to be waited for.
 */
export interface CheckTime {
  /** Whether the store goes by the clock that it was given. */
  readonly isGiven: boolean
  /** Milliseconds since the epoch, as the store takes them to be. */
  readonly now: () => number
  /** So many hundredths in milliseconds. */
  readonly ms: (hundredths: number) => number
  /** On a clock of the store's own a little more, never less. */
  readonly pass: (hundredths: number) => Promise<void>
  /** All but the last of them; on a clock of the store's own, half of them. */
  readonly passAlmost: (hundredths: number) => Promise<void>
  /** On a clock of the store's own, which goes on meanwhile, two moments are the same when they are near. @throws CheckFailure */
  readonly same: (what: string, found: number, wanted: number) => void
}

/** A clock that stands still but for what passes in checks. */
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

/** The store's own, which is ahead of that of this process by so much. */
export function createOwnTime(leaseMs: number, ahead: number): CheckTime {
  const now = () => systemClock.now() + ahead
  const ms = (hundredths: number) => Math.ceil((hundredths * leaseMs) / 100)
  const sleep = async (delay: number) =>
    new Promise<void>((resolve) => void systemClock.setTimeout(resolve, delay))
  return {
    isGiven: false,
    now,
    ms,
    // Timers of the platform may fire a millisecond early.
    pass: async (hundredths) => sleep(ms(hundredths) + 2),
    passAlmost: async (hundredths) => sleep(ms(hundredths / 2)),
    same(what, found, wanted) {
      if (!(Math.abs(found - wanted) <= leaseMs))
        throw new CheckFailure(`${what} should be about ${wanted}, but is ${found}`)
    },
  }
}
