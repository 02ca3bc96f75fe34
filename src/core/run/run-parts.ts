import type { AnyActorRef } from 'xstate'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import type { Clock } from '../base/clock.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import type { MachineState } from '../sessions/log/record-content.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { Session } from '../sessions/session.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Inspector } from './safe-inspector.js'

/** What a run begins from: its input, or the state in which it was left. */
export interface RunOrigin {
  /** The machine's input, bound to this run. */
  input?: object
  /** The machine's state, as plain JSON. */
  snapshot?: MachineState
  /** Where the run is written ahead, when its session is kept in a store. */
  log?: SessionLog
  /** The id of the queued message that it begins with. */
  queuedId?: string
}

/** The link of a sub-agent's run to the run above. */
export interface ParentLink {
  /** The actor that it is a child of, and its id there. */
  parent: AnyActorRef
  id: string
  /** Receives each state of the run at once. */
  watch: (context: AgentContext) => void
  /** Receives its events, from the first on. */
  onEvent: (event: AgentEvent) => void
}

/** What a run is made of. */
export interface RunParts {
  machine: AgentMachine
  clock: Clock
  /** The tools of an agent of the session. Null: of its first agent. */
  tools: (speaker: string | null | undefined) => ToolSet
  /** The result with its output as an object, where the agent has a schema for it. Never throws or rejects. */
  withObject: (result: RunResult) => RunResult | Promise<RunResult>
  runId: string
  session: Session
  /** A promise where the session has to be read first; its rejection refuses the run. */
  origin: RunOrigin | Promise<RunOrigin>
  signal: AbortSignal | undefined
  /** Settles when the run may start; a rejection refuses it. */
  ready?: Promise<void> | undefined
  inspect: Inspector | undefined
  /** Of a sub-agent's run. */
  above?: ParentLink
}
