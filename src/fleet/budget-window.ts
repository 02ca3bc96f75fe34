/** How long a window of a budget is: a unit of the calendar, or milliseconds. */
export type BudgetPeriod = 'hour' | 'day' | 'month' | number

/** A window of time: both in milliseconds since the epoch. `endsAt` is where the next one begins. */
export interface BudgetWindow {
  windowAt: number
  endsAt: number | null
}

const hourMs = 3_600_000

/** The window that a moment is in. Without a period there is one window, which began with the epoch and has no end. */
export function findWindow(now: number, per: BudgetPeriod | null, timezone: string): BudgetWindow {
  if (per === null) return { windowAt: 0, endsAt: null }
  if (typeof per === 'number') {
    const windowAt = Math.floor(now / per) * per
    return { windowAt, endsAt: windowAt + per }
  }
  if (per === 'hour') {
    // Zones are off by quarters of an hour; an hour that comes twice has two windows.
    const offset = getOffset(now, timezone)
    const windowAt = Math.floor((now + offset) / hourMs) * hourMs - offset
    return { windowAt, endsAt: windowAt + hourMs }
  }
  const local = new Date(now + getOffset(now, timezone))
  const [year, month] = [local.getUTCFullYear(), local.getUTCMonth()]
  const day = per === 'day' ? local.getUTCDate() : 1
  const next = per === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1)
  return {
    windowAt: fromLocalTime(Date.UTC(year, month, day), timezone),
    endsAt: fromLocalTime(next, timezone),
  }
}

/** Whether this is a time zone that the platform knows. */
export function isTimezone(timezone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: timezone }) !== undefined
  } catch {
    return false
  }
}

/**
 * The moment at which clocks of a zone show a local time, given as if the zone were UTC. Depends on the local time alone. A time
 * that the clocks leave out becomes one beside it.
 */
function fromLocalTime(local: number, timezone: string): number {
  const guess = local - getOffset(local, timezone)
  return local - getOffset(guess, timezone)
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** What local clocks are ahead of UTC, in milliseconds. */
function getOffset(at: number, timezone: string): number {
  if (timezone === 'UTC') return 0
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  formats.set(timezone, format)
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  const second0 = Math.floor(at / 1000) * 1000
  return Date.UTC(year, month - 1, day, hour, minute, second) - second0
}
