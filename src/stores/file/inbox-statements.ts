import type { InboxMessage, UnreadInbox } from '../../core/sessions/store/inbox.js'
import { selectBytes, selectInteger, type Prepare, decodeText } from './sql-values.js'

/** The SQL of the inboxes, prepared once. */
export function prepareInboxStatements(one: Prepare) {
  const count = one('UPDATE sessions SET told = told + 1 WHERE id = ?')
  const put = one(
    'INSERT INTO inbox (session_id, message, at, text) SELECT id, told, ?, ? FROM sessions WHERE id = ?',
  )
  const read = one(
    `SELECT ${selectInteger('message')}, ${selectInteger('at')}, ${selectBytes('text')} FROM inbox
     WHERE session_id = ? AND message > ? ORDER BY message`,
  ).raw()
  const told = one(`SELECT ${selectInteger('told')} FROM sessions WHERE id = ?`).raw()
  const last = one('SELECT max(message) FROM inbox WHERE session_id = ?').raw()
  const remove = one('DELETE FROM inbox WHERE session_id = ? AND message = ?')
  const findUnread = one(`
    SELECT ${selectBytes('session_id')}, max(message) FROM inbox
    WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id`).raw()
  const listUnread = one(
    `SELECT ${selectBytes('session_id')}, max(message) FROM inbox GROUP BY session_id`,
  ).raw()
  const toNews = (rows: unknown): UnreadInbox[] =>
    (rows as [Buffer, number][]).map(([id, inbox]) => ({ sessionId: decodeText(id), inbox }))

  return {
    /** The number of the message. */
    put(sessionId: string, time: number, message: string): number {
      count.run([sessionId])
      put.run([time, message, sessionId])
      return (told.all([sessionId]) as [number][])[0]?.[0] ?? 0
    },
    read: (sessionId: string, after = 0): InboxMessage[] =>
      (read.all([sessionId, after]) as [number, number, Buffer][]).map(([message, at, words]) => ({
        message,
        at,
        text: decodeText(words),
      })),
    /** The number of the last message; 0: there is none. */
    last: (sessionId: string): number => (last.all([sessionId]) as [number | null][])[0]?.[0] ?? 0,
    remove(sessionId: string, message: number) {
      remove.run([sessionId, message])
    },
    findUnread: (sessionIds: readonly string[]): UnreadInbox[] =>
      toNews(findUnread.all([JSON.stringify(sessionIds)])),
    listUnread: (): UnreadInbox[] => toNews(listUnread.all([])),
  }
}
