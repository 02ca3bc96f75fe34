import { replayEvents } from '../../core/run/watch-session.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import type { GuardSaid } from './evaluation-report.js'

/** What the log of a session says that its result does not. */
export interface RunFacts {
  durationMs: number
  guards: GuardSaid[]
}

export async function readRunFacts(store: SessionStore, session: string): Promise<RunFacts> {
  const records = await store.read(session)
  const guards = [...replayEvents(records, session)].flatMap(({ events }) =>
    events.flatMap((event): GuardSaid[] => {
      if (event.type !== 'guardrail') return []
      const { guard, action, message } = event
      return [{ guard, action, message: message.slice(0, 600) }]
    }),
  )
  return { durationMs: measureWork(records, session), guards }
}

/** The time between the records of runs: without the time between two runs, and between a stop and a resume. */
function measureWork(records: readonly LogRecord[], session: string): number {
  let [total, before, head] = [0, 0, records[0]?.type === 'snapshot' ? records[0].seq - 1 : 0]
  for (const record of records) {
    const entry = openRecord(record, head, session)
    head = record.seq
    const begins =
      entry.type === 'opened' ||
      entry.type === 'start' ||
      (entry.type === 'event' && entry.event.type === 'RESUMED')
    if (!begins && before > 0) total += Math.max(0, record.at - before)
    before = record.at
  }
  return total
}
