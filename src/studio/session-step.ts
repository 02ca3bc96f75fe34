import type { StateValue } from 'xstate'
import type { Usage } from '../../machines/agent/usage.js'
import type { FoldedRun, FoldedSession } from '../core/sessions/fold-session.js'
import type { RecordContent } from '../core/sessions/log/record-content.js'
import type { LogRecord } from '../core/sessions/store/store.js'
import type { InstructionsView } from './protocol.js'

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

/** What the model was told at that point: a fork's own instructions stand before those of a step, and these before the agent's. */
export function findToldInstructions(
  { run, state }: Pick<FoldedSession, 'run' | 'state'>,
  own: string | undefined,
): Omit<InstructionsView, 'forkAt'> | null {
  const forked = (run?.context ?? state).terms?.instructions
  if (forked !== undefined) return { text: forked, from: 'fork' }
  const planned = run?.context.plan?.instructions
  if (planned !== undefined) return { text: planned, from: 'step' }
  return own ? { text: own, from: 'agent' } : null
}
