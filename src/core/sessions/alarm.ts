import type { Appended, Lease, LogRecord, SessionStore, SessionSummary } from './store/store.js'
import { removeTimer, type StoredTimer } from './store/timers.js'

export const alarmPrefix = 'wake:'

/** The session to wake, and the agent that started its run. */
export interface Alarm {
  session: string
  agent?: string
  version?: string
}

/**
 * Appends records and the summary of a run. If the run sleeps, its alarm is set before the log records the sleep, so
 * that a crash between the two writes loses nothing. Two kinds of runs get no alarm: sub-agents, because their caller
 * wakes them, and forks, because they sleep until they are resumed.
 */
export function appendWithAlarm(
  store: SessionStore,
  lease: Lease,
  records: readonly LogRecord[],
  { summary, isLast }: { summary: SessionSummary | undefined; isLast: boolean },
): Promise<Appended | void> | Appended | void {
  const append = (): Promise<Appended | void> | Appended | void =>
    isLast ? store.append(lease, records, summary, { release: true }) : store.append(lease, records, summary)
  if (summary?.wakeAt === undefined || records.length === 0) return append()
  if (summary.parent !== undefined || summary.unresumed) return append()
  const { wakeAt, agent: name, version } = summary
  const set = setAlarm(store, lease.sessionId, wakeAt, { name, version })
  return set instanceof Promise ? set.then(append) : append()
}

/** Sets the timer that wakes a session. Any process that polls the store's timers can wake it. */
export function setAlarm(
  { timers }: SessionStore,
  session: string,
  at: number,
  begun: { name?: string | undefined; version?: string | undefined } | null,
): Promise<void> | void {
  const data: Omit<Alarm, 'session'> = {
    ...(begun?.name !== undefined && { agent: begun.name }),
    ...(begun?.version !== undefined && { version: begun.version }),
  }
  return timers?.set([{ id: `${alarmPrefix}${session}`, at, data: JSON.stringify(data) }])
}

/** Removes the session's wake timer. */
export async function removeAlarm({ timers }: SessionStore, session: string): Promise<void> {
  if (timers) await removeTimer(timers, `${alarmPrefix}${session}`)
}

export function parseAlarm({ id, data }: StoredTimer): Alarm | null {
  if (!id.startsWith(alarmPrefix)) return null
  try {
    const { agent, version } = JSON.parse(data) as Partial<Alarm>
    const session = id.slice(alarmPrefix.length)
    const isText = (value: unknown): value is string => typeof value === 'string'
    return { session, ...(isText(agent) && { agent }), ...(isText(version) && { version }) }
  } catch {
    return null
  }
}
