import { UsageError } from '../base/errors.js'
import { readTime } from '../base/clock.js'

/** What a tool returns to let its run sleep: made by `sleepUntil`. */
export class Sleep {
  /** Milliseconds since the epoch. */
  readonly at: number

  constructor(at: number) {
    this.at = at
  }

  /** In words for the model: it reads them when the run goes on. */
  describe(now: number): string {
    const date = new Date(this.at).toISOString()
    return this.at > now
      ? `The run sleeps until ${date}. It goes on at that time, unless a person or a message wakes it before.`
      : `${date} is over: the run goes on at once.`
  }
}

/** Earlier than this, a number is a duration that was meant as a time: it is a day of March 1973. */
const leastTime = 100_000_000_000

/**
 * Lets the run of a tool sleep: return it from `execute`. When all calls of the batch have their results, the run rests in
 * PAUSED, `sleeping`, and costs nothing. `createWaker`, DBOS, Restate and `runSession` wake it at that time.
 *
 * - Of several dates, the latest counts. A date that is over lets the run go on at once.
 * - `date`: a Date, or milliseconds since the epoch.
 *
 * @example
 * const waitForPayment = defineTool({
 *   name: 'wait_for_payment',
 *   description: 'Waits until the payment is due. Then check the account again.',
 *   input: z.object({ due: z.iso.datetime() }),
 *   polling: true,
 *   execute: ({ due }) => sleepUntil(new Date(due)),
 * })
 * @throws {UsageError} `invalid_date` for what is no date, and for a number that is a duration
 */
export function sleepUntil(date: Date | number): Sleep {
  const at = readTime(date)
  if (at === null) throw dateError('it must be a Date, or a number of milliseconds since the epoch')
  if (at < leastTime)
    throw dateError(
      `${at} is a duration, or a date before 1973: to sleep for that long, add the present time to it`,
    )
  return new Sleep(Math.ceil(at))
}

function dateError(what: string): UsageError {
  return new UsageError('invalid_date', `sleepUntil(date): ${what}.`, 'date')
}
