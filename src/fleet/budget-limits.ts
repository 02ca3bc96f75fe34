import { valueOr } from '../core/base/maybe-promise.js'
import { getOrCreate, limitTotal } from '../core/base/values.js'
import type { BudgetAllowance, BudgetStore } from '../core/budgets/budget-store.js'
import type { Clock } from '../core/base/clock.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { configError } from '../core/base/errors.js'
import { checkOptions, choiceRule, countRule, type OptionRules } from '../core/config/check-options.js'

/** Options for `createBudget`. `usd`, `tokens`, or both are required. */
export interface CreateBudgetOptions {
  /** The id of the budget, which is unique in its store. All processes that use one id share the budget. */
  id: string
  /** The limit in US dollars, more than 0. */
  usd?: number
  /** The limit on input and output tokens, at least 1. */
  tokens?: number
  /** When the budget resets. Never by default. */
  per?: BudgetPeriod
  /** The IANA time zone in which hours, days and months start. Defaults to UTC. */
  timezone?: string
  /** A Statewright session store, or a custom `BudgetStore`. */
  store: Pick<SessionStore, 'openBudgets'> | BudgetStore
  /** The output tokens to reserve for a request without `sampling.maxTokens`. Defaults to 8192. */
  reserveOutputTokens?: number
  /** How to count the reservation of a dead process. The request may have cost money, so the default is `spent`. */
  lostReservations?: 'spent' | 'free'
  /**
   * The effect on a run that the budget cannot pay for. `end` (default) ends the run in BUDGET_EXCEEDED. `wait` pauses
   * the run until the next window and requires `per`.
   */
  onEmpty?: 'end' | 'wait'
  /** How long the reservation of a dead process stays valid, in milliseconds. Defaults to 60,000. */
  leaseMs?: number
  /** The clock to use in tests. Defaults to the system clock. */
  clock?: Clock
}

export interface BudgetTerms {
  usd: number | null
  /** Input and output tokens. */
  tokens: number | null
  /** The length of a window. Null for a single window that never ends. */
  per: BudgetPeriod | null
  /** IANA time zone for the start of days and months, such as `Europe/Zurich`. */
  timezone: string
}

/** The maximum amount in USD. Larger amounts cannot be counted exactly. */
const mostUsd = 9_000_000
const mostPerMs = 366 * 86_400_000

const optionRules: OptionRules<CreateBudgetOptions> = {
  id: {
    is: (value) => typeof value === 'string' && /^[^\s\p{Cc}]{1,200}$/u.test(value),
    phrase: 'a string of 1 to 200 characters without spaces',
    isRequired: true,
  },
  usd: {
    is: (value) => isNumber(value, 1e-9, mostUsd),
    phrase: 'an amount in US dollars above 0 and up to 9000000',
  },
  tokens: countRule,
  per: {
    is: (value) => isCalendar(value) || isWholeFrom(value, 1000, mostPerMs),
    phrase: "'hour', 'day', 'month', or a whole number of milliseconds from 1000 to a year",
  },
  timezone: {
    is: (value) => typeof value === 'string' && isTimezone(value),
    phrase: 'a time zone, such as Europe/Zurich',
  },
  store: null,
  reserveOutputTokens: countRule,
  lostReservations: choiceRule('spent', 'free'),
  onEmpty: choiceRule('end', 'wait'),
  leaseMs: {
    is: (value) => isWholeFrom(value, 1000, mostPerMs),
    phrase: 'a whole number of milliseconds, at least 1000',
  },
  clock: null,
}

export function readTerms(options: object): BudgetTerms {
  const checked = checkOptions('createBudget(options)', options, optionRules, configError)
  const { id, usd = null, tokens = null, per = null, timezone, onEmpty } = checked
  if (usd === null && tokens === null)
    throw configError(
      `The budget '${id}' has no limit. Set usd, tokens, or both: createBudget({ id, usd: 5, store }).`,
      'usd',
    )
  if (timezone !== undefined && !isCalendar(per))
    throw configError(
      `timezone needs per: 'hour', 'day' or 'month'; ${per === null ? 'without per, the budget never resets' : 'milliseconds have no time zone'}. Omit timezone, or set per to one of these.`,
      'timezone',
    )
  if (onEmpty === 'wait' && per === null)
    throw configError(
      `onEmpty: 'wait' needs per. Without it, the budget '${id}' never resets, and a run would wait forever. Set per: 'day', for example, or omit onEmpty.`,
      'onEmpty',
    )
  return { usd, tokens, per, timezone: timezone ?? 'UTC' }
}

export function formatTerms({ usd, tokens, per, timezone }: BudgetTerms): string {
  return JSON.stringify({ usd, tokens, per, timezone })
}

/** A readable description, such as `usd 5 per day (Europe/Zurich)`. */
export function describeTerms({ usd, tokens, per, timezone }: BudgetTerms): string {
  const limits = [...(usd === null ? [] : [`usd ${usd}`]), ...(tokens === null ? [] : [`tokens ${tokens}`])]
  const window = per === null ? '' : typeof per === 'number' ? ` per ${per} ms` : ` per ${per} (${timezone})`
  return `${limits.join(' and ')}${window}`
}

/** Parses stored terms. Returns null if they are invalid. */
export function parseTerms(text: string): BudgetTerms | null {
  try {
    const terms = JSON.parse(text) as Partial<BudgetTerms>
    const { usd = null, tokens = null, per = null, timezone = 'UTC' } = terms
    const isValid =
      (usd === null || isNumber(usd, 0, mostUsd)) &&
      (tokens === null || countRule.is(tokens)) &&
      (per === null || isCalendar(per) || isNumber(per, 1000, mostPerMs)) &&
      isTimezone(timezone)
    return isValid ? { usd, tokens, per, timezone } : null
  } catch {
    return null
  }
}

const nanosPerUsd = 1e9

/** Rounds up so that every price counts. Floating-point errors in prices are far below this unit. */
export const toNanoUsd = (usd: number): number => limitTotal(Number((usd * nanosPerUsd).toPrecision(12)))

export const fromNanoUsd = (nanoUsd: number): number => nanoUsd / nanosPerUsd

export function toAllowance({ usd, tokens }: BudgetTerms): BudgetAllowance {
  return { nanoUsd: usd === null ? null : Math.floor(Number((usd * nanosPerUsd).toPrecision(15))), tokens }
}

function isCalendar(per: unknown): per is 'hour' | 'day' | 'month' {
  return per === 'hour' || per === 'day' || per === 'month'
}

function isNumber(value: unknown, from: number, to: number): boolean {
  return typeof value === 'number' && value >= from && value <= to
}

function isWholeFrom(value: unknown, from: number, to: number): boolean {
  return Number.isSafeInteger(value) && isNumber(value, from, to)
}

/** The length of a budget window, as a calendar unit or in milliseconds. */
export type BudgetPeriod = 'hour' | 'day' | 'month' | number

/** A time window in milliseconds since the epoch. The next window starts at `windowEndsAt`. */
export interface BudgetWindow {
  windowAt: number
  windowEndsAt: number | null
}

const hourMs = 3_600_000

/** The window that contains a moment. Without a period, one window starts at the epoch and never ends. */
export function findWindow(now: number, per: BudgetPeriod | null, timezone: string): BudgetWindow {
  if (per === null) return { windowAt: 0, windowEndsAt: null }
  if (typeof per === 'number') {
    const windowAt = Math.floor(now / per) * per
    return { windowAt, windowEndsAt: windowAt + per }
  }
  if (per === 'hour') {
    // Offsets are multiples of a quarter hour. A repeated hour has two windows.
    const offset = getOffset(now, timezone)
    const windowAt = Math.floor((now + offset) / hourMs) * hourMs - offset
    return { windowAt, windowEndsAt: windowAt + hourMs }
  }
  const local = new Date(now + getOffset(now, timezone))
  const [year, month] = [local.getUTCFullYear(), local.getUTCMonth()]
  const day = per === 'day' ? local.getUTCDate() : 1
  const next = per === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1)
  return {
    windowAt: fromLocalTime(Date.UTC(year, month, day), timezone),
    windowEndsAt: fromLocalTime(next, timezone),
  }
}

function isTimezone(timezone: string): boolean {
  return valueOr(() => Intl.DateTimeFormat('en', { timeZone: timezone }) !== undefined, false)
}

/** When clocks in a zone show a local time, given as if in UTC. A skipped time maps to a nearby one. */
function fromLocalTime(local: number, timezone: string): number {
  const guess = local - getOffset(local, timezone)
  return local - getOffset(guess, timezone)
}

const formats = new Map<string, Intl.DateTimeFormat>()

function getOffset(at: number, timezone: string): number {
  if (timezone === 'UTC') return 0
  const format = getOrCreate(
    formats,
    timezone,
    () => new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' }),
  )
  const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  // Some offsets had seconds until 1972.
  const [, sign = '', hours = 0, minutes = 0, seconds = 0] = /([+-])(\d+):(\d+)(?::(\d+))?/.exec(name) ?? []
  return Number(`${sign}1`) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000
}
