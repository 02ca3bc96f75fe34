import type { AgentInput, SessionState } from '../../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../../machines/agent/machine-events.js'
import type { AgentDefinition } from '../agent-definition.js'
import type { BranchStart, BranchTree } from '../branch-tree.js'
import type { LoggedEdit } from '../fork-edit.js'
import type { SessionTags } from '../store/session-tags.js'

/** The version of the record format. Readers refuse logs with a higher version. */
export const logVersion = 1

/** What a run starts from, but for what the log itself says: the session's state. So a start is small, too. */
export type StartInput = Omit<AgentInput, keyof SessionState>

/** The machine at one moment, as XState keeps it: plain JSON. */
export interface MachineState {
  status: 'active' | 'done' | 'error' | 'stopped'
  value: unknown
  context: object
  [key: string]: unknown
}

/**
 * What a session's log is made of, in this order: one `opened`, then a `start` and its `event`s for each run. A
 * `snapshot` may stand anywhere after an event: it says what all before it comes to, so that reading can begin there.
 */
export type RecordContent = Content & {
  /** The number of the run's last event when this was written: on the last of those that were written together. */
  lastEventSeq?: number
  /** What the run's telemetry leaves for the process that resumes the run: see `JournalEntry`. A snapshot repeats the last. */
  link?: string
  /** The features that the log uses from here on. A snapshot repeats all. A reader that does not know one refuses the log. */
  needs?: string[]
}

type Content =
  | {
      type: 'opened'
      version: number
      name?: string
      /** What the session is found by: from its first run, or from the session that it was forked from. */
      tags?: SessionTags
      /** Of a sub-agent's session: the session of the run that called it. */
      parent?: string
      /** What the session had when it came here: stored elsewhere, or forked. */
      state?: SessionState
      /** The record of another session that it begins at, and what it has otherwise. */
      forkedFrom?: { sessionId: string; seq: number; edit?: LoggedEdit }
    }
  | {
      type: 'start'
      input: StartInput
      /** The agent that begins the run. */
      definition?: AgentDefinition
      /** The number of the queued message of the session's inbox that the run begins with. */
      queued?: number
      /** What the session is found by from here on, where the run changes it. */
      tags?: SessionTags
      /** The run begins a branch: it leaves the transcript before its end. */
      branch?: BranchStart
    }
  | { type: 'event'; event: AgentMachineEvent }
  | {
      type: 'snapshot'
      version: number
      name?: string
      tags?: SessionTags
      parent?: string
      runs: number
      /** Of the latest run. */
      definition?: AgentDefinition
      /** The last message of the session's inbox that is in the log. */
      inbox?: number
      /** The last queued message of the inbox that a run began with. */
      queued?: number
      /** The idempotency keys of the last messages that are in the log. */
      keys?: string[]
      /** The branches of the session, where it has several. */
      branches?: BranchTree
      /** The session is put back on this branch. Absent: the record repeats what those before it say. */
      selected?: number
      state: MachineState
    }
