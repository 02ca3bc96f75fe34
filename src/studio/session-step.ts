import type { StateValue } from 'xstate'
import type { Usage } from '../../machines/agent/usage.js'
import type { FoldedRun, FoldedSession } from '../core/sessions/fold-session.js'
import type { RecordContent } from '../core/sessions/log/log-record.js'
import type { LogRecord } from '../core/sessions/store/store.js'
import type { InstructionsView } from './protocol.js'

export interface Moment {
  session: Readonly<FoldedSession>
  /** Usage of the latest run's sub-agents. */
  children: Usage
}

export interface SessionStep {
  record: LogRecord
  entry: RecordContent
  before: Moment
  after: Moment
  transitionIds: string[]
}

/** Paths of the innermost active states. */
export function listActivePaths(run: FoldedRun | null): string[] {
  return run === null ? [] : listLeaves(run.value as StateValue)
}

function listLeaves(value: StateValue, above = ''): string[] {
  if (typeof value === 'string') return [`${above}${value}`]
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === undefined ? [] : listLeaves(inner, `${above}${key}.`),
  )
}

/** The instructions in effect: those of the fork, otherwise of the step, otherwise of the agent. */
export function findEffectiveInstructions(
  { run, state }: Pick<FoldedSession, 'run' | 'state'>,
  own: string | undefined,
): Omit<InstructionsView, 'forkAt'> | null {
  const forked = (run?.context ?? state).terms?.instructions
  if (forked !== undefined) return { text: forked, from: 'fork' }
  const planned = run?.context.plan?.instructions
  if (planned !== undefined) return { text: planned, from: 'step' }
  return own ? { text: own, from: 'agent' } : null
}
