import { systemClock } from '../../core/base/clock.js'
import { CheckFailure, expectSame } from '../check-assertions.js'

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
