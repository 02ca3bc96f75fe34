import type { AnyActorRef } from 'xstate'
import type { BudgetRemaining } from '../../../guards/budget.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentState, RunResult } from '../../../machines/agent/outcome.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { ToolSet } from './tool-set.js'

/** What makes a tool a sub-agent. */
export interface Delegate {
  /** The deepest level at which it may run: 1 is right below a run that people started. */
  readonly maxDepth: number
  /** The tools of the sub-agent itself. */
  readonly tools: ToolSet
  /** The sub-agent's user message. Throws when the input makes none. */
  readonly messageFor: (input: unknown) => string
  /** Begins the run of a call, or goes on with it. Null: it was under way before, and nothing is left of it. */
  readonly open: (errand: Errand) => Promise<DelegateRun | null>
}

/** What a call needs of the run that carries it out. */
export interface DelegateRun {
  readonly state: AgentState
  /** Its end, or its next rest. Rejects when it is refused. */
  readonly result: Promise<RunResult>
  approve(callId: string, args: unknown, options: { fingerprint: string }): void
  reject(callId: string, why: string, options: { fingerprint: string }): void
  toolOutput(callId: string, value: unknown): void
  pause(): void
  resume(): void
  cancel(why: string): void
}

/** One call of a sub-agent, and what its run gives it. */
export interface Errand {
  /** The call's tool. */
  name: string
  message: string
  /** Where its log is kept: the same when the call is carried out again after a crash. */
  sessionId: string
  /** The call has been under way before. */
  isBegun: boolean
  /** The actor that it is a child of, and its id there. */
  parent: AnyActorRef
  actorId: string
  /** The store of the run. Absent: the sub-agent lives in memory. */
  store: SessionStore | undefined
  /** What the run has left. */
  left: BudgetRemaining
  countCached: boolean
  depth: number
  maxDepth: number
  /** The app's own object. */
  context: unknown
  /** Aborts when nobody waits for the sub-agent any more. */
  signal: AbortSignal
  /** Told whatever its run has come to, as it happens. */
  watch: (context: AgentContext) => void
  /** Told its events, from the first on. */
  hear: (event: AgentEvent) => void
}
