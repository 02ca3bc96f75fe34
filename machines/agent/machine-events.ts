import type { DoneActorEvent, ErrorActorEvent } from 'xstate'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { NewMessage } from './context.js'
import type { CompactionOutput } from './fit.js'
import type { Json } from './json.js'
import type { ModelActorError, ModelOutput } from './model-response.js'
import type { ChildQuestion, ToolResult, ToolTraits } from './batch-calls.js'
import type { MediaPart, RetrievedSnippet } from './messages.js'
import type { CallScreening, InputScreening, OutputScreening } from './screening.js'
import type { SkillChange } from './skills.js'
import type { StepPlan } from './step-plan.js'
import type { Usage } from './usage.js'

/** Every event carries the time at which it happened: the machine itself has no clock. */
interface EventBase {
  /** Milliseconds since the epoch. The runtime stamps it on events that lack one. */
  now?: number
  /** The event holds uncleared content: it is not shown from the log. */
  withheld?: true
  /** The number of the inbox message that carried it. */
  inbox?: number
  /** Its sender's idempotency key: a second message with the same key is the same message. */
  key?: string
}

/** The part of an answer that came before its request was stopped; the runtime adds it to the event that stops it. */
export interface PartialAnswer {
  text: string
  /** An estimate of what it cost. */
  usage: Usage | null
}

/**
 * An event that people and programs send to a run.
 *
 * @example
 * const stop: ControlEvent = { type: 'CANCEL', why: 'The user has closed the page.' }
 * createActor(agent.machine, { input: 'Go.' }).start().send(stop)
 */
export type ControlEvent = EventBase &
  (
    | { type: 'CANCEL'; why?: string; partial?: PartialAnswer }
    | { type: 'PAUSE' }
    /**
     * Ends a pause, or withdraws one that the run has not taken yet. `at`, in milliseconds since the epoch: not before then.
     */
    | { type: 'RESUME'; at?: number }
    /** Guidance that reaches the model at the next safe point, without resetting any counter. */
    | { type: 'STEER'; text: string }
    /** The next user message of an interactive run. */
    | { type: 'REPLY'; messages: NewMessage[] }
    /**
     * `arguments`: JSON text that replaces the model's. `fingerprint`, `messageId`: of the call that was asked about.
     */
    | { type: 'APPROVE'; callId: string; arguments?: string; fingerprint?: string; messageId?: string }
    | { type: 'REJECT'; callId: string; why: string; fingerprint?: string; messageId?: string }
    /** The result of a call that the client executes. */
    | {
        type: 'TOOL_OUTPUT'
        callId: string
        content: string
        media?: MediaPart[]
        isError?: boolean
        fingerprint?: string
        messageId?: string
      }
  )

/** An event of the machine's own actors. */
export type ActorEvent = EventBase &
  /** `usage`: of a sub-agent, as far as it is not reported yet. */
  (
    | { type: 'TOOL_RESULT'; callId: string; result: ToolResult; usage?: Usage }
    /** The usage of a sub-agent since its last report. */
    | { type: 'CHILD_USAGE'; callId: string; usage: Usage }
    /**
     * A sub-agent waits for answers; without questions, it was paused, or sleeps until `wakeAt`. Or a tool asks in the middle of
     * its call: `memo` is what it wants to have when it is called again with the answers.
     */
    | { type: 'CHILD_WAITING'; callId: string; questions: ChildQuestion[]; wakeAt?: number; memo?: Json }
    /** A call has found deferred tools, or has called one: they are loaded before its result comes. */
    | { type: 'TOOLS_LOADED'; callId: string; names: readonly string[] }
    /** A running call loads a skill, or takes one back; it counts when the call succeeds. */
    | { type: 'SKILL_CHANGED'; callId: string; change: SkillChange }
    /** A running call keeps what its tool goes on from in another process. */
    | { type: 'HANDLE_SAVED'; callId: string; handle: Json }
    /** A running call hands the conversation to another agent; it counts when the call succeeds, and its batch is over. */
    | { type: 'HANDED_OFF'; callId: string; to: string; tools: Record<string, ToolTraits> }
    | { type: 'BATCH_DONE' }
    | { type: 'DEADLINE'; partial?: PartialAnswer }
    /**
     * A stored run resumes in a new process: its current substate is entered again. `tools`: those of the resuming
     * program, where they differ from those at the start.
     */
    | { type: 'RESUMED'; tools?: Record<string, ToolTraits> }
    /**
     * The process that works at a stored run stops, so that another process can resume it. `usage`: of the request that
     * it drops.
     * `notStarted`: started calls that it has not begun.
     */
    | { type: 'RELEASED'; usage?: Usage; notStarted?: readonly string[] }
    /** The session's log could not be written: later events would be lost. */
    | { type: 'STORE_FAILED'; failure: { code: string; message: string }; partial?: PartialAnswer }
    | (DoneActorEvent<ModelOutput, 'model'> & { type: 'xstate.done.actor.model' })
    | (ErrorActorEvent<ModelActorError, 'model'> & { type: 'xstate.error.actor.model' })
    | (DoneActorEvent<ModelOutput, 'conclusion'> & { type: 'xstate.done.actor.conclusion' })
    | (ErrorActorEvent<ModelActorError, 'conclusion'> & { type: 'xstate.error.actor.conclusion' })
    | (DoneActorEvent<CompactionOutput, 'fitting'> & { type: 'xstate.done.actor.fitting' })
    | (DoneActorEvent<InputScreening[], 'inputShields'> & { type: 'xstate.done.actor.inputShields' })
    | (DoneActorEvent<OutputScreening, 'outputShields'> & { type: 'xstate.done.actor.outputShields' })
    | (DoneActorEvent<CallScreening[], 'callShields'> & { type: 'xstate.done.actor.callShields' })
    | (DoneActorEvent<CallScreening[], 'resultShields'> & { type: 'xstate.done.actor.resultShields' })
    | (DoneActorEvent<RetrievedSnippet[], 'retrieval'> & { type: 'xstate.done.actor.retrieval' })
    | (DoneActorEvent<StepPlan, 'plan'> & { type: 'xstate.done.actor.plan' })
    | (DoneActorEvent<UserGuardsOutput, 'callGuards'> & { type: 'xstate.done.actor.callGuards' })
    | (DoneActorEvent<UserGuardsOutput, 'resultGuards'> & { type: 'xstate.done.actor.resultGuards' })
  )

/** Every event of the machine: from people and programs, and from its own actors. */
export type AgentMachineEvent = ControlEvent | ActorEvent

/** When an event happened; the initial event carries it in its input. */
export function getEventTime(event: { now?: number; input?: { now?: number } }): number {
  return event.now ?? event.input?.now ?? 0
}
