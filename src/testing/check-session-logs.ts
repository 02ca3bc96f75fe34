import { StoreError } from '../core/sessions/store/store-error.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { checkSessionLog, type LogViolation } from './check-session-log.js'

/** What is wrong with a log: a rule that a record breaks, or the code of the error that reading it ends with. */
export interface LogFault {
  /** The record; null where the log cannot be read. */
  seq: number | null
  /** The name of the rule, or `corrupt_log`, `newer_log`, `unknown_state`. */
  rule: string
  message: string
  /** The rule, in a sentence; null where the log cannot be read. */
  law: string | null
}

/** A session of a store, and what is wrong with its log; null: nothing is. */
export interface CheckedLog {
  session: string
  violation: LogFault | null
}

const pageSize = 500

/** Judges the log of every session of a store, those of sub-agents too, one after the other. Nothing is written. */
export async function* checkSessionLogs(store: SessionStore): AsyncGenerator<CheckedLog> {
  let cursor: ListedSession | undefined
  do {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    const page = await store.list({ children: true, limit: pageSize, after: cursor })
    for (const { id } of page) {
      // oxlint-disable-next-line no-await-in-loop -- one log at a time is in memory
      const records = await store.read(id)
      // It was deleted in the meantime, or nothing was ever written.
      if (records.length > 0) yield { session: id, violation: findFault(() => checkSessionLog(records, id)) }
    }
    cursor = page.length === pageSize ? page.at(-1) : undefined
  } while (cursor)
}

function findFault(check: () => LogViolation | null): LogFault | null {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { seq: null, rule: error.code, message: error.message, law: null }
  }
}
