import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import { UsageError } from '../base/errors.js'
import { readTime } from '../base/clock.js'

/**
 * Ends a pause or a sleep, or puts it off until a date.
 * @throws {UsageError} `invalid_input` for options that are no object, and for what is no date
 */
export function toResumeEvent(options: { at?: Date | number }): ControlEvent {
  if (typeof options !== 'object' || options === null)
    throw new UsageError('invalid_input', 'resume(options): pass { at } with a date, or nothing.', 'options')
  const { at } = options
  if (at === undefined) return { type: 'RESUME' }
  const time = readTime(at)
  if (time !== null) return { type: 'RESUME', at: time }
  const message = 'resume({ at }): at must be a Date, or milliseconds since the epoch.'
  throw new UsageError('invalid_input', message, 'at')
}
