import type { StateValue } from 'xstate'
import type { Usage } from '../../machines/agent/usage.js'
import type { RecordContent } from '../core/sessions/log/record-content.js'
import type { FoldedRun, FoldedSession } from '../core/sessions/fold-session.js'
import type { LogRecord } from '../core/sessions/store/store.js'

/** A session after a record. */
export interface Moment {
  standing: Readonly<FoldedSession>
  /** The usage of the latest run's sub-agents. */
  children: Usage
}

/** One record, and its effect. */
export interface SessionStep {
  record: LogRecord
  entry: RecordContent
  before: Moment
  after: Moment
  /** Ids of the transitions taken. */
  taken: string[]
}

/** Paths of the innermost states that are active. */
export function listActivePaths(run: FoldedRun | null): string[] {
  return run === null ? [] : listLeaves(run.value as StateValue)
}

function listLeaves(value: StateValue, above = ''): string[] {
  if (typeof value === 'string') return [`${above}${value}`]
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === undefined ? [] : listLeaves(inner, `${above}${key}.`),
  )
}
