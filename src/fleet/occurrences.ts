import type { Cron } from 'croner'
import { ConfigError } from '../core/base/errors.js'
import { loadPeer } from '../core/base/platform.js'

/** When something recurs: by a cron pattern in a time zone, or every so many milliseconds. */
export type Recurrence = { cron: string; timezone: string } | { everyMs: number }

/** The times of a recurrence, in milliseconds since the epoch. */
export interface Occurrences {
  /** The first one after a time; null when none is left. */
  findNext(after: number): number | null
}

/**
 * The times of a recurrence. Those of `everyMs` are counted from `anchor`.
 * @throws {ConfigError} `invalid_schedule` for a pattern or a time zone that does not exist
 * @throws {StatewrightError} `missing_package`
 */
export async function createOccurrences(recurrence: Recurrence, anchor: number): Promise<Occurrences> {
  if ('everyMs' in recurrence) {
    const { everyMs } = recurrence
    return {
      findNext: (after) => {
        const next = anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs
        // Beyond the range of exact numbers, a time would follow itself for ever.
        return next > after && next <= 8.64e15 ? next : null
      },
    }
  }
  const cron = await parseCron(recurrence.cron, recurrence.timezone)
  return { findNext: (after) => cron.nextRun(new Date(after))?.getTime() ?? null }
}

async function parseCron(pattern: string, timezone: string): Promise<Cron> {
  const croner = await loadPeer<{ Cron: typeof Cron }>('croner', 'A schedule with `cron`')
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch {
    throw new ConfigError(
      'invalid_schedule',
      `There is no time zone '${timezone}': use a name such as Europe/Berlin or UTC.`,
      'timezone',
    )
  }
  try {
    return new croner.Cron(pattern, { timezone, paused: true })
  } catch (error) {
    throw new ConfigError(
      'invalid_schedule',
      `'${pattern}' is no cron pattern: ${error instanceof Error ? error.message : String(error)}. Write five fields, such as ` +
        "'30 8 * * MON-FRI'.",
      'cron',
      { cause: error },
    )
  }
}
