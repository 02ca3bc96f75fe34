import type { AgentInput, SessionState } from '../../../../machines/agent/context.js'
import type { AgentDefinition } from '../agent-definition.js'
import { toLinkField } from '../journal.js'
import { hasTags, type SessionTags } from '../store/session-tags.js'
import type { SessionSummary } from '../store/store.js'
import type { BranchTree } from '../branch-tree.js'
import { logVersion, type MachineState, type RecordContent, type StartInput } from './log-record.js'
import { toStoredState } from './stored-state.js'
import type { InboxEnd } from './write-ahead-log.js'

type Opening = Extract<RecordContent, { type: 'opened' }>
type Snapshot = Extract<RecordContent, { type: 'snapshot' }>

export interface SessionIdentity {
  name: string | undefined
  tags: SessionTags
  /** For a sub-agent, the session of the run that called it. */
  parent: string | undefined
}

/** Facts that all records of a session share. */
export interface SessionFacts extends SessionIdentity {
  runs: number
  /** The agent that started the latest run. Null if the log does not contain the agent. */
  definition: AgentDefinition | null
  /** The branches of the session. Null if there is only one. */
  branches?: BranchTree | null
}

/** Absent facts have their initial values. */
type SnapshotFacts = SessionFacts & Partial<InboxEnd> & { link?: string | null }

/** The first record of a log. `initialState` is the state of a session that was not stored here before. */
export function createOpening(
  identity: SessionIdentity,
  initialState: SessionState | undefined,
  forkedFrom?: Opening['forkedFrom'],
): Opening {
  return {
    type: 'opened',
    version: logVersion,
    ...toIdentityFields(identity),
    ...(initialState && { state: initialState }),
    ...(forkedFrom && { forkedFrom }),
  }
}

/** The log already contains the session's state. */
export function toStartInput(input: AgentInput): StartInput {
  const {
    messages: _m,
    usage: _u,
    guardrails: _g,
    warnedOfBudget: _w,
    fit: _f,
    loaded: _l,
    terms: _t,
    turnEnds: _e,
    refusals: _r,
    grants: _a,
    lastMessageNumber: _n,
    ...rest
  } = input
  return rest satisfies StartInput & { [Key in keyof SessionState]?: never }
}

/** The state after all earlier records, so that reading can start there. */
export function createSnapshot(
  state: MachineState,
  { runs, definition, branches, inbox = 0, queued = 0, keys = [], link, ...identity }: SnapshotFacts,
): Snapshot {
  return {
    type: 'snapshot',
    version: logVersion,
    ...toIdentityFields(identity),
    runs,
    ...(definition && { definition }),
    ...(inbox > 0 && { inbox }),
    ...(queued > 0 && { queued }),
    ...(keys.length > 0 && { keys: [...keys] }),
    ...(branches && { branches }),
    state: toStoredState(state),
    ...toLinkField(link),
  }
}

export function toIdentityFields({
  name,
  tags,
  parent,
}: SessionIdentity): Pick<SessionSummary, 'name' | 'tags' | 'parent'> {
  return {
    ...(name !== undefined && { name }),
    ...(hasTags(tags) && { tags }),
    ...(parent !== undefined && { parent }),
  }
}
