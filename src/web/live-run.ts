import type { Principal } from '../../machines/agent/principal.js'
import type { Agent } from '../core/agent/agent-options.js'
import type { MessageTarget } from '../core/run/apply-message.js'
import type { Run } from '../core/run/run.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import type { RunInput } from '../core/sessions/input-history.js'
import type { SessionTags } from '../core/sessions/store/session-tags.js'
import type { Turn } from './chat-turn.js'
import type { CheckedExpose, EventFailure } from './exposure.js'
import type { ReplayBuffer } from './replay-buffer.js'
import type { RunHooks } from './run-hooks.js'

/** An agent with a store, regardless of its output, tools and context. */
export type ChatAgent = Pick<Agent, 'config' | 'replay' | 'send' | 'watch' | 'selectBranch'> & {
  /** The type of the options depends on the `context` that the agent's tools require. */
  run(input: RunInput, options: never): AnyRun
  resume(sessionId: string, options: never): Promise<AnyRun>
  branch(sessionId: string, options: never): AnyRun
}

export type AnyRun = MessageTarget &
  Pick<Run, 'id' | 'sessionId' | 'state' | 'events$' | 'started' | 'result' | 'snapshot'>

/** How to handle a message while the session is active. See `HandlerOptions`. */
export type WhenBusy = 'queue' | 'steer' | 'refuse'

/** The rights of a request, and what its page may see. */
export interface Caller {
  context: unknown
  /** Tags of the session if this request starts a run. */
  tags: SessionTags | undefined
  /** The sender, as the app identifies it. */
  by: Principal | undefined
  /** Receives each failure of the run up to its next rest. Never throws. */
  report(failure: EventFailure, run: { id: string | null; sessionId: string }): void
  hooks: RunHooks
  /** Whether the request may continue a run that another request started. */
  mayContinue: boolean
  expose: CheckedExpose
  whenBusy: WhenBusy
}

export interface LiveRun {
  run: AnyRun
  /** Its events since this process started or resumed it. */
  buffer: ReplayBuffer
  /** The turn before those events. Null for a run that started here. */
  turn: Turn | null
  /** The page's ids of the messages that the run received here. */
  clientIds: Set<string>
  caller: Caller
  /** Whether it has been active since this process started or resumed it. */
  hasWorked: boolean
  /** The point where its answer diverges from other branches. */
  point?: BranchPoint | undefined
  closing: Promise<void> | undefined
}
