import { expectArgument, objectRule } from '../core/base/values.js'
import { ConfigError, UsageError } from '../core/base/errors.js'
import { expectKnownOptions } from '../core/config/known-options.js'
import { agentsRule, getCommonStore } from '../core/drive/common-store.js'
import type { Agents } from '../core/drive/define-agents.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { findTagsFault, type SessionTags } from '../core/sessions/store/session-tags.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { removeTimer, type SessionTimers, type StoredTimer } from '../core/sessions/store/timers.js'
import { toMessages, type UserInput } from '../core/sessions/user-input.js'
import { createOccurrences, type Recurrence } from './occurrences.js'

/** What to begin, and when. */
export interface ScheduleOptions {
  /** 1 to 150 characters of a session id. The session of a firing is `ID@TIME`, such as `report@2026-05-04T06:30:00Z`. */
  id: string
  /** A cron pattern of five fields, or of six with seconds first. Needs the package `croner`. Either this or `everyMs`. */
  cron?: string
  /** A whole number of milliseconds, at least 1,000; the first firing comes after one of them. */
  everyMs?: number
  /**
   * Of `cron`. When clocks go forward, a skipped time fires one hour later. When they go back, a repeated time fires once. Default: UTC.
   */
  timezone?: string
  /** What each firing says to the agent: at most 100,000 characters of JSON. */
  input: UserInput
  /** Which agent of `defineAgents`. Default: the only one. */
  agent?: string
  /** Of each firing's session, besides `schedule`, which is this id. */
  tags?: SessionTags
  /**
   * Which missed firings are made up for: those that came due while no process ran. Default: `one`.
   *
   * - `one`: the last of them
   * - `all`: each of them
   * - `none`: those of the last minute
   */
  catchUp?: CatchUp
}

export type CatchUp = 'one' | 'all' | 'none'

/** A schedule as the store keeps it. */
export interface Schedule {
  id: string
  agent: string
  cron?: string
  everyMs?: number
  timezone?: string
  catchUp: CatchUp
  /** When it fires next; milliseconds since the epoch, by the store's clock. */
  nextAt: number
}

/** What the data of a schedule's timer is. */
export interface StoredSchedule {
  agent: string
  recurrence: Recurrence
  input: UserInput
  tags: SessionTags
  catchUp: CatchUp
  /** What the times of `everyMs` are counted from. */
  anchor: number
}

const scheduleKeys = [
  'id',
  'cron',
  'everyMs',
  'timezone',
  'input',
  'agent',
  'tags',
  'catchUp',
] as const satisfies (keyof ScheduleOptions)[]
const catchUps: readonly CatchUp[] = ['one', 'all', 'none']
const leastMs = 1000
const mostInputChars = 100_000
const pageSize = 500

export const schedulePrefix = 'schedule:'

/**
 * Stores a schedule: processes with a scheduler (`createScheduler`) begin a session of the agent at each of its times, exactly
 * one for each. Call it at each start of your program: an equal schedule is left as it is, and goes on from where it was; another one of
 * this id is replaced, and counts from now on.
 *
 * @example
 * const reporter = createAgent({ model, store: memoryStore() })
 * const { nextAt } = await schedule(defineAgents({ reporter }), { id: 'hourly', everyMs: 3_600_000, input: 'Write the report.' })
 * console.log(new Date(nextAt).toISOString())
 * @throws {ConfigError} `invalid_schedule`, naming the key; `unknown_agent`; `no_timers` for a store that keeps none
 * @throws {StatewrightError} `missing_package` for `cron` without croner
 */
export async function schedule(agents: Agents, options: ScheduleOptions): Promise<Schedule> {
  expectArgument('schedule(agents)', agents, agentsRule)
  const { id, agent, recurrence, input, tags, catchUp } = checkScheduleOptions(agents, options)
  const timers = getTimers(getCommonStore(agents))
  const timerId = `${schedulePrefix}${id}`
  const wanted = { agent, recurrence, input, tags, catchUp }
  const before = await timers.get(timerId)
  const stored = before && parseSchedule(before.data)
  if (before && stored && isSame(stored, wanted)) return toSchedule(id, stored, before.at)
  const { now } = await timers.listDue({ limit: 1 })
  const occurrences = await createOccurrences(recurrence, now)
  const nextAt = occurrences.findNext(now)
  if (nextAt === null)
    throw scheduleError('cron', `${JSON.stringify(recurrence)} has no time that is still to come`)
  const kept: StoredSchedule = { ...wanted, anchor: now }
  await timers.set([{ id: timerId, at: nextAt, data: JSON.stringify(kept) }])
  return toSchedule(id, kept, nextAt)
}

/**
 * Removes a schedule: it fires no more. Sessions that it has begun go on. False: there was none.
 *
 * @example
 * const reporter = createAgent({ model, store: memoryStore() })
 * const wasThere = await unschedule(defineAgents({ reporter }), 'hourly') // false
 * @throws {ConfigError} `no_timers`
 */
export async function unschedule(agents: Agents, id: string): Promise<boolean> {
  expectArgument('unschedule(agents)', agents, agentsRule)
  return removeSchedule(getCommonStore(agents), id)
}

/** The same by the store alone. */
export async function removeSchedule(store: SessionStore, id: string): Promise<boolean> {
  return removeTimer(getTimers(store), `${schedulePrefix}${id}`)
}

/**
 * The schedules of a store, by their ids. With `agents`, `stranded` says which of them no agent here can run: such a schedule
 * fires only where its agent is deployed.
 *
 * @example
 * for (const { id, nextAt } of await listSchedules(memoryStore())) console.log(id, new Date(nextAt))
 * @throws {ConfigError} `no_timers`
 */
export async function listSchedules(
  store: SessionStore,
  agents?: Agents,
): Promise<(Schedule & { stranded?: boolean })[]> {
  expectArgument('listSchedules(store)', store, objectRule(['list'], 'a store, such as fileStore({ dir })'))
  if (agents !== undefined) expectArgument('listSchedules(store, agents)', agents, agentsRule)
  const timers = getTimers(store)
  const found: (Schedule & { stranded?: boolean })[] = []
  let page: StoredTimer[] = []
  do {
    const after = page.at(-1)?.id
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    page = await timers.list({ prefix: schedulePrefix, limit: pageSize, after })
    for (const { id, at, data } of page) {
      const stored = parseSchedule(data)
      if (stored === null) continue
      const stranded = agents && { stranded: !agents.names.includes(stored.agent) }
      found.push({ ...toSchedule(id.slice(schedulePrefix.length), stored, at), ...stranded })
    }
  } while (page.length === pageSize)
  return found
}

/** @throws {ConfigError} `no_timers` */
export function getTimers({ timers }: SessionStore): SessionTimers {
  if (timers) return timers
  throw new ConfigError(
    'no_timers',
    'This store keeps no timers, so nothing can be scheduled in it. memoryStore(), fileStore() and postgresStore() do; a store ' +
      'of your own does with `timers`.',
    'store',
  )
}

/** The range of a Date. A number beyond it leads to no next time. */
const isTime = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Math.abs(value as number) <= 8.64e15

/** Null for a text that is no schedule of ours. */
export function parseSchedule(data: string): StoredSchedule | null {
  try {
    const { agent, recurrence, input, tags, catchUp, anchor } = JSON.parse(data) as StoredSchedule
    const recurs =
      'everyMs' in recurrence
        ? Number.isSafeInteger(recurrence.everyMs) && recurrence.everyMs >= leastMs
        : typeof recurrence.cron === 'string' && typeof recurrence.timezone === 'string'
    const isOne = typeof agent === 'string' && recurs && catchUps.includes(catchUp) && isTime(anchor)
    if (!isOne || findTagsFault(tags) !== null) return null
    toMessages(input)
    return { agent, recurrence, input, tags, catchUp, anchor }
  } catch {
    return null
  }
}

function isSame(
  { anchor: _anchor, ...stored }: StoredSchedule,
  wanted: Omit<StoredSchedule, 'anchor'>,
): boolean {
  const { agent, recurrence, input, tags, catchUp } = stored
  return JSON.stringify({ agent, recurrence, input, tags, catchUp }) === JSON.stringify(wanted)
}

function toSchedule(id: string, { agent, recurrence, catchUp }: StoredSchedule, nextAt: number): Schedule {
  return { id, agent, ...recurrence, catchUp, nextAt }
}

function checkScheduleOptions(
  agents: Agents,
  options: ScheduleOptions,
): Omit<StoredSchedule, 'anchor'> & { id: string } {
  if (typeof options !== 'object' || options === null)
    throw scheduleError('options', 'what is scheduled is { id, cron, input } or { id, everyMs, input }')
  expectKnownOptions('schedule', options, scheduleKeys)
  const { id, agent, tags = {}, catchUp = 'one', input } = options
  if (!isSessionId(id) || id.length > 150)
    throw scheduleError('id', 'it must be 1 to 150 characters of a session id')
  const [only] = agents.names
  if (agent === undefined && agents.names.length > 1)
    throw scheduleError('agent', `say which agent it runs: ${agents.names.join(', ')}`)
  const { name } = agents.get(agent ?? only ?? '')
  const fault = findTagsFault(tags) ?? findTagsFault({ ...tags, schedule: id })
  if (fault !== null) throw scheduleError('tags', `tags ${fault}`)
  if (!catchUps.includes(catchUp)) throw scheduleError('catchUp', `it must be one of ${catchUps.join(', ')}`)
  return {
    id,
    agent: name,
    recurrence: checkRecurrence(options),
    input: checkInput(input),
    tags: { ...tags, schedule: id },
    catchUp,
  }
}

function checkRecurrence({ cron, everyMs, timezone = 'UTC' }: ScheduleOptions): Recurrence {
  if ((cron === undefined) === (everyMs === undefined))
    throw scheduleError('cron', 'give either cron or everyMs')
  if (everyMs !== undefined) {
    if (!Number.isSafeInteger(everyMs) || everyMs < leastMs)
      throw scheduleError('everyMs', `it must be a whole number of milliseconds, at least ${leastMs}`)
    return { everyMs }
  }
  if (typeof cron !== 'string')
    throw scheduleError('cron', "it must be a cron pattern, such as '30 8 * * MON-FRI'")
  if (typeof timezone !== 'string') throw scheduleError('timezone', 'it must be the name of a time zone')
  return { cron, timezone }
}

/** As the store will give it back. */
function checkInput(input: unknown): UserInput {
  try {
    toMessages(input)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw scheduleError('input', error.message.replace(/\.$/, ''))
  }
  const text = JSON.stringify(input)
  if (text.length > mostInputChars)
    throw scheduleError(
      'input',
      `it has ${text.length} characters of JSON, and at most ${mostInputChars} are kept with a schedule: name where the agent finds the rest`,
    )
  return JSON.parse(text) as UserInput
}

function scheduleError(key: string, what: string): ConfigError {
  return new ConfigError('invalid_schedule', `schedule: ${key}: ${what}.`, key)
}
