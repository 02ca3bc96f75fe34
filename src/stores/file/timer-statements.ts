import type { StoredTimer } from '../../core/sessions/store/timers.js'
import { decodeText, selectBytes, selectInteger, type Prepare } from './sql-values.js'

const columns = `${selectBytes('id')}, ${selectInteger('at')}, ${selectBytes('data')}`

/** The SQL of the timers, prepared once. */
export function prepareTimerStatements(one: Prepare) {
  const get = one(`SELECT ${columns} FROM timers WHERE id = ?`).raw()
  const set = one(
    'INSERT INTO timers (id, at, data) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at, data = excluded.data',
  )
  const add = one('INSERT INTO timers (id, at, data) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING')
  const listDue = one(`
    SELECT ${columns} FROM timers WHERE at <= ?1 AND (at > ?2 OR (at = ?2 AND id > ?3)) ORDER BY at, id LIMIT ?4`).raw()
  const list = one(`
    SELECT ${columns} FROM timers WHERE id > ?1 AND substr(id, 1, length(?2)) = ?2 ORDER BY id LIMIT ?3`).raw()
  const move = one('UPDATE timers SET at = ? WHERE id = ? AND at = ?')
  const remove = one('DELETE FROM timers WHERE id = ? AND at = ?')

  return {
    get: (id: string): StoredTimer | null => get.all([id]).map(readTimer)[0] ?? null,
    set({ id, at, data }: StoredTimer) {
      set.run([id, at, data])
    },
    add({ id, at, data }: StoredTimer) {
      add.run([id, at, data])
    },
    listDue: (time: number, limit: number, after: Pick<StoredTimer, 'at' | 'id'>): StoredTimer[] =>
      listDue.all([time, after.at, after.id, limit]).map(readTimer),
    list: (prefix: string, limit: number, after: string): StoredTimer[] =>
      list.all([after, prefix, limit]).map(readTimer),
    /** Whether it was at that time. */
    move: (id: string, from: number, to: number | null): boolean =>
      (to === null ? remove.run([id, from]) : move.run([to, id, from])).changes > 0,
  }
}

function readTimer(row: unknown): StoredTimer {
  const [id, at, data] = row as [Buffer, number, Buffer]
  return { id: decodeText(id), at, data: decodeText(data) }
}
