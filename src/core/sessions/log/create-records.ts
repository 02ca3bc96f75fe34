import type { SessionState } from '../../../../machines/agent/context.js'
import type { AgentDefinition } from '../agent-definition.js'
import { toLinkField } from '../journal.js'
import { type MachineState, logVersion, type RecordContent } from './record-content.js'
import { toStoredState } from './stored-state.js'

type Opening = Extract<RecordContent, { type: 'opened' }>
type Snapshot = Extract<RecordContent, { type: 'snapshot' }>

/** What the records of a session have in common. */
interface SessionFacts {
  name: string | undefined
  runs: number
  /** The agent that began the latest run; null where the log does not say. */
  definition: AgentDefinition | null
}

/** What the log has of the session's inbox: see `FoldedSession`. */
interface InboxFacts {
  applied?: number
  queued?: number
  keys?: readonly string[]
}

/** The first record of a log. `initialState`: what the session had when it came to the store. */
export function createOpening(
  name: string | undefined,
  initialState: SessionState | undefined,
  forkedFrom?: Opening['forkedFrom'],
): Opening {
  return {
    type: 'opened',
    version: logVersion,
    ...(name !== undefined && { name }),
    ...(initialState && { state: initialState }),
    ...(forkedFrom && { forkedFrom }),
  }
}

/** A record of the state that all records before it lead to, so that reading can begin there. */
export function createSnapshot(
  state: MachineState,
  { name, runs, definition }: SessionFacts,
  { applied = 0, queued = 0, keys = [] }: InboxFacts = {},
  link: string | null = null,
): Snapshot {
  return {
    type: 'snapshot',
    version: logVersion,
    ...(name !== undefined && { name }),
    runs,
    ...toDefinitionField(definition),
    ...(applied > 0 && { inbox: applied }),
    ...(queued > 0 && { queued }),
    ...(keys.length > 0 && { keys: [...keys] }),
    state: toStoredState(state),
    ...toLinkField(link),
  }
}

export function toDefinitionField(definition: AgentDefinition | null): { definition?: AgentDefinition } {
  return definition === null ? {} : { definition }
}
