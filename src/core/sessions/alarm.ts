import { parseJsonOr } from '../base/json.js'
import { chain, type MaybePromise } from '../base/maybe-promise.js'
import type { Appended, Lease, LogRecord, SessionStore, SessionSummary } from './store/store.js'
import type { StoredTimer } from './store/timers.js'

export const alarmPrefix = 'wake:'

export interface Alarm {
  session: string
  agent?: string
  version?: string
}

/**
 * Sets the alarm of a run that sleeps before the log records the sleep, so that a crash between the two loses
 * nothing. Sub-agents get none, because their caller wakes them, and forks sleep until they are resumed.
 */
export function appendWithAlarm(
  store: SessionStore,
  lease: Lease,
  records: readonly LogRecord[],
  { summary, isLast }: { summary: SessionSummary | undefined; isLast: boolean },
): MaybePromise<Appended | void> {
  const append = (): MaybePromise<Appended | void> =>
    isLast ? store.append(lease, records, summary, { release: true }) : store.append(lease, records, summary)
  if (summary?.wakeAt === undefined || records.length === 0) return append()
  if (summary.parent !== undefined || summary.unresumed) return append()
  const { wakeAt, agent: name, version } = summary
  return chain(setAlarm(store, lease.sessionId, wakeAt, { name, version }), append)
}

export function setAlarm(
  { timers }: SessionStore,
  session: string,
  at: number,
  begun: { name?: string | undefined; version?: string | undefined } | null,
): Promise<void> | void {
  const data = JSON.stringify({ agent: begun?.name, version: begun?.version })
  return timers?.set([{ id: `${alarmPrefix}${session}`, at, data }])
}

export async function removeAlarm({ timers }: SessionStore, session: string): Promise<void> {
  const id = `${alarmPrefix}${session}`
  for (;;) {
    // Another process may move the timer between attempts.
    const timer = await timers?.get(id)
    if (!timer || (await timers?.move({ id, from: timer.at, to: null }))) return
  }
}

export function parseAlarm({ id, data }: StoredTimer): Alarm | null {
  const stored = parseJsonOr(data, null) as Record<keyof Alarm, unknown> | null
  if (!id.startsWith(alarmPrefix) || stored === null) return null
  const { agent, version } = stored
  const session = id.slice(alarmPrefix.length)
  return {
    session,
    ...(typeof agent === 'string' && { agent }),
    ...(typeof version === 'string' && { version }),
  }
}
