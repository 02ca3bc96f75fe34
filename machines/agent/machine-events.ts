import type { DoneActorEvent, ErrorActorEvent } from 'xstate'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { NewMessage } from './context.js'
import type { NewGrant } from './grant.js'
import type { CompactionOutput } from './fit.js'
import type { Json } from './json.js'
import type { ModelActorError, ModelOutput } from './model-response.js'
import type { ChildQuestion, ToolResult, ToolTraits } from './batch-calls.js'
import type { MediaPart, RetrievedSnippet } from './messages.js'
import type { Principal } from './principal.js'
import type { CallScreening, InputScreening, OutputScreening } from './screening.js'
import type { SkillChange } from './skills.js'
import type { StepPlan } from './step-plan.js'
import type { Usage } from './usage.js'

/** Fields of all events. Each event includes its time, because the machine has no clock. */
interface EventBase {
  /** Milliseconds since the epoch. The runtime adds the time if it is missing. */
  now?: number
  /** The event contains uncleared content. The content is masked when the log is displayed. */
  withheld?: true
  /** Number of the inbox message that delivered the event. */
  inbox?: number
  /** The sender's idempotency key. Messages with the same key are processed once. */
  key?: string
  /** The person or program that sent the event. */
  by?: Principal
}

/** What was received before the request was stopped. Added by the runtime to the event that stopped it. */
export interface PartialAnswer {
  text: string
  /** Estimated usage, or null. */
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
    /** Ends a pause, or withdraws one that has not taken effect. With `at` (milliseconds since the epoch), later. */
    | { type: 'RESUME'; at?: number }
    /** Guidance for the model at the next safe point. Resets no counter. */
    | { type: 'STEER'; text: string }
    /** The next user message of an interactive run. */
    | { type: 'REPLY'; messages: NewMessage[] }
    /** `arguments` is JSON text that replaces the model's. `fingerprint` and `messageId` identify the call. */
    | {
        type: 'APPROVE'
        callId: string
        arguments?: string
        /** The reason. It is stored in the log, but the model does not read it. */
        why?: string
        fingerprint?: string
        messageId?: string
        /** A grant that also approves later calls. */
        grant?: NewGrant
      }
    /** Approves later calls to a tool. */
    | { type: 'GRANT'; tool: string; grant: NewGrant }
    /** Ends a grant, or withdraws the sender's approval of a call that has not started. */
    | { type: 'REVOKE'; grant: string }
    | { type: 'REVOKE'; callId: string; fingerprint?: string; messageId?: string }
    | { type: 'REJECT'; callId: string; why: string; fingerprint?: string; messageId?: string }
    /** Sent by the runtime at the right time. No effect if it is sent earlier. */
    | { type: 'APPROVAL_EXPIRED' }
    /** The result of a call that the client runs. */
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

/** An event from the machine's actors. */
export type ActorEvent = EventBase &
  /** `usage` is the sub-agent usage that has not been reported yet. */
  (
    | { type: 'TOOL_RESULT'; callId: string; result: ToolResult; usage?: Usage }
    /** The usage of a sub-agent since its last report. */
    | { type: 'CHILD_USAGE'; callId: string; usage: Usage }
    /** Waits for answers, or pauses without questions, until `wakeAt`. A tool gets `memo` back with the answers. */
    | { type: 'CHILD_WAITING'; callId: string; questions: ChildQuestion[]; wakeAt?: number; memo?: Json }
    /** A call found or used deferred tools. The tools are loaded before the call's result is added. */
    | { type: 'TOOLS_LOADED'; callId: string; names: readonly string[] }
    /** A running call loads or unloads a skill. The change takes effect when the call succeeds. */
    | { type: 'SKILL_CHANGED'; callId: string; change: SkillChange }
    /** A running call stores a handle that lets another process continue it. */
    | { type: 'HANDLE_SAVED'; callId: string; handle: Json }
    /** Takes effect when the call succeeds and the batch ends. */
    | { type: 'HANDED_OFF'; callId: string; to: string; tools: Record<string, ToolTraits> }
    /** The grant of a call ended before the call could start. */
    | { type: 'GRANT_ENDED'; callId: string }
    | { type: 'BATCH_DONE' }
    | { type: 'DEADLINE'; partial?: PartialAnswer }
    /** A new process re-enters the substate. `tools` are its tools, if they differ. */
    | { type: 'RESUMED'; tools?: Record<string, ToolTraits> }
    /** Another process can resume the run. `notStarted` lists the calls that were passed to tools but did not run. */
    | { type: 'RELEASED'; usage?: Usage; notStarted?: readonly string[] }
    /** The log could not be written, so later events would be lost. */
    | { type: 'STORE_FAILED'; failure: { code: string; message: string }; partial?: PartialAnswer }
    | ActorEnd[keyof ActorEnd]
    | { type: 'xstate.done.actor.backOff' | 'xstate.done.actor.tools'; actorId: string; output?: unknown }
    | Broken<'backOff' | 'tools'>
  )

/** What each invoked actor returns, by its id. */
interface ActorOutputs {
  model: ModelOutput
  conclusion: ModelOutput
  fitting: CompactionOutput
  inputShields: InputScreening[]
  outputShields: OutputScreening
  callShields: CallScreening[]
  resultShields: CallScreening[]
  retrieval: RetrievedSnippet[]
  plan: StepPlan
  callGuards: UserGuardsOutput
  resultGuards: UserGuardsOutput
}

type ActorEnd = {
  [Id in keyof ActorOutputs]:
    | (DoneActorEvent<ActorOutputs[Id], Id> & { type: `xstate.done.actor.${Id}` })
    | Broken<Id>
}

/** Only failures of `model` and `conclusion` are retried. Each other failure ends the run. */
type Broken<Ids extends string> = {
  [Id in Ids]: ErrorActorEvent<ModelActorError, Id> & { type: `xstate.error.actor.${Id}` }
}[Ids]

export type AgentMachineEvent = ControlEvent | ActorEvent

/** The time of an event. The initial event stores the time in its input. */
export function getEventTime(event: { now?: number; input?: { now?: number } }): number {
  return event.now ?? event.input?.now ?? 0
}
