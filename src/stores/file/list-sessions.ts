import type { Listing } from '../../core/sessions/store/list-options.js'
import { type SessionRow, sessionColumns, readSessionRow } from './session-row.js'
import type { Prepare } from './sql-values.js'

/** The time of the last write of a session that is held: its row is not updated with each record. */
const heldWrittenAtSql = `max(summed_up_at, coalesce(
  (SELECT written_at FROM records WHERE session_id = id ORDER BY seq DESC LIMIT 1), 0))`

/**
 * The sessions of a list, the one written last first. Those that no process writes to stand in an index in this order, one for
 * each state that is asked for; the few others are looked at one by one.
 */
export function listSessions(one: Prepare, { states, agent, limit, cursor }: Listing): SessionRow[] {
  const found: SessionRow[] = []
  for (const state of states === null ? [null] : new Set(states)) {
    for (const [held, time] of [
      ['IS NULL', 'summed_up_at'],
      ['IS NOT NULL', heldWrittenAtSql],
    ] as const) {
      const conditions = [`token ${held}`]
      const values: unknown[] = []
      const where = (condition: string, ...given: unknown[]): void => {
        conditions.push(condition)
        values.push(...given)
      }
      if (held === 'IS NOT NULL') where('EXISTS (SELECT 1 FROM records WHERE session_id = id)')
      if (agent !== null) where('agent = ?', agent)
      if (state !== null) where('state = ?', state)
      if (cursor !== null) {
        where(`${time} <= ?`, cursor.updatedAt)
        where(`(${time} < ? OR id > ?)`, cursor.updatedAt, cursor.id)
      }
      const sql = `SELECT ${sessionColumns} FROM sessions WHERE ${conditions.join(' AND ')} ORDER BY ${time} DESC, id LIMIT ?`
      found.push(
        ...one(sql)
          .raw()
          .all([...values, limit])
          .map(readSessionRow),
      )
    }
  }
  return found.sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1)).slice(0, limit)
}
