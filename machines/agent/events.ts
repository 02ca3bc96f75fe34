import type { DoneActorEvent, ErrorActorEvent } from 'xstate'
import type { Consultation } from './consultation.js'
import type { NewMessage } from './context.js'
import type { ModelActorError, ModelOutput } from './response.js'
import type { ToolResult } from './results.js'
import type { Usage } from './usage.js'

/** Every event carries the time at which it happened: the machine itself has no clock. */
interface Timed {
  /** Milliseconds since the epoch. The runtime stamps it on events that lack one. */
  now?: number
}

/** What a stopped request had brought so far; the runtime puts it on the event that stops it. */
export interface PartialAnswer {
  text: string
  /** An estimate of what it cost. */
  usage: Usage | null
}

/** What people and programs may say to a run. */
export type PublicEvent = Timed &
  (
    | { type: 'CANCEL'; why?: string; partial?: PartialAnswer }
    | { type: 'PAUSE' }
    | { type: 'RESUME' }
    /** Guidance that reaches the model at the next safe point, without resetting any counter. */
    | { type: 'STEER'; text: string }
    /** The next user message of an interactive run. */
    | { type: 'REPLY'; messages: NewMessage[] }
    /** `arguments`: JSON text that replaces the model's. */
    | { type: 'APPROVE'; callId: string; arguments?: string }
    | { type: 'REJECT'; callId: string; why: string }
    /** The result of a call that the client executes. */
    | { type: 'TOOL_OUTPUT'; callId: string; content: string; isError?: boolean }
  )

/** What the machine's own actors report. */
export type ActorEvent = Timed &
  (
    | { type: 'TOOL_RESULT'; callId: string; result: ToolResult }
    | { type: 'BATCH_DONE' }
    | { type: 'DEADLINE'; partial?: PartialAnswer }
    /** A stored run goes on in a new process: the present substate is entered again. */
    | { type: 'RESUMED' }
    | (DoneActorEvent<ModelOutput, 'model'> & { type: 'xstate.done.actor.model' })
    | (ErrorActorEvent<ModelActorError, 'model'> & { type: 'xstate.error.actor.model' })
    | (DoneActorEvent<ModelOutput, 'conclusion'> & { type: 'xstate.done.actor.conclusion' })
    | (ErrorActorEvent<ModelActorError, 'conclusion'> & { type: 'xstate.error.actor.conclusion' })
    | (DoneActorEvent<Consultation, 'callGuards'> & { type: 'xstate.done.actor.callGuards' })
    | (DoneActorEvent<Consultation, 'resultGuards'> & { type: 'xstate.done.actor.resultGuards' })
  )

export type AgentMachineEvent = PublicEvent | ActorEvent

/** What a shield says of a content. */
export interface ShieldOutput {
  action: 'allow' | 'block'
  message: string | null
}

/** When an event happened; the initial event carries it in its input. */
export function timeOf(event: { now?: number; input?: { now?: number } }): number {
  return event.now ?? event.input?.now ?? 0
}
