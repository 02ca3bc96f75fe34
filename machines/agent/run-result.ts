import type { GuardName } from '../../guards/roster.js'
import type { Message } from './messages.js'
import type { Usage } from './usage.js'

/** Where a run can be: at work in the first two, at rest in all others; see `FinalState` for its ends. */
export type AgentState =
  | 'RUNNING'
  | 'WAITING_FOR_TOOL'
  | 'WAITING_FOR_INPUT'
  | 'PAUSED'
  | 'COMPLETED'
  | 'CANCELLED'
  | 'TIMED_OUT'
  | 'MAX_STEPS'
  | 'BUDGET_EXCEEDED'
  | 'BLOCKED'
  | 'ERROR'

const knownStates: Record<AgentState, true> = {
  RUNNING: true,
  WAITING_FOR_TOOL: true,
  WAITING_FOR_INPUT: true,
  PAUSED: true,
  COMPLETED: true,
  CANCELLED: true,
  TIMED_OUT: true,
  MAX_STEPS: true,
  BUDGET_EXCEEDED: true,
  BLOCKED: true,
  ERROR: true,
}

export const agentStates = Object.keys(knownStates) as readonly AgentState[]

/** Whether a run is at work there; at rest, or at its end, in every other state. */
export function isWorkState(state: AgentState | null | undefined): state is 'RUNNING' | 'WAITING_FOR_TOOL' {
  return state === 'RUNNING' || state === 'WAITING_FOR_TOOL'
}

/** Whether a run rests in this state until an answer or `resume()`. */
export function isRestState(state: AgentState | null | undefined): state is 'WAITING_FOR_INPUT' | 'PAUSED' {
  return state === 'WAITING_FOR_INPUT' || state === 'PAUSED'
}

/** How a run can end. */
export type FinalState = Exclude<AgentState, 'RUNNING' | 'WAITING_FOR_TOOL' | 'WAITING_FOR_INPUT' | 'PAUSED'>

/** Why a run is in its state: one word of a closed list. */
export type Reason =
  | 'end_turn'
  | 'max_tokens'
  | 'refusal'
  | 'content_filter'
  | 'shield'
  | 'cancelled'
  | 'timeout'
  | 'max_steps'
  | 'max_tool_calls'
  | 'max_tool_calls_per_response'
  | 'max_calls'
  | 'token_budget'
  | 'output_tokens'
  | 'cost_limit'
  | 'shared_budget'
  | 'context_overflow'
  | GuardName
  | 'user_guard'
  | 'provider_error'
  | 'incomplete_response'
  | 'empty_response'
  | 'invalid_output'
  | 'store_error'
  | 'internal'
  | 'approval'
  | 'tool_output'
  | 'message'
  | 'paused'
  | 'sleeping'

export interface RunFailure {
  /** The reason again, or the provider's own code (`insufficient_quota`, `model_not_found`, …). */
  code: string
  /** A sentence that says what happened and what to do. */
  message: string
  /** True when trying again later, or resuming, can succeed. */
  recoverable: boolean
  /** The id of the shared budget that did not allow the next request. */
  budget?: string
}

/** The end of a run that did not answer its user message in full, or the pause of one that rests in PAUSED. */
export interface TurnEnd {
  /** The id of the user message. */
  messageId: string
  state: AgentState
  reason: Reason
  error?: Pick<RunFailure, 'code' | 'message'>
  /** The time at which a sleeping run continues, in milliseconds since the epoch. */
  wakeAt?: number
}

/** In place of an agent's tools (`{ add: { a: number; b: number } }`): whatever they are, they fit. */
export type AnyTools = never

/**
 * A call that waits for an answer.
 *
 * @example
 * if (result.state === 'WAITING_FOR_INPUT') {
 *   for (const call of result.pending) {
 *     if (call.needs === 'approval') run.approve(call)
 *     else run.addToolOutput(call, 'done here')
 *   }
 * }
 */
export type PendingCall<Tools = AnyTools> = UnansweredCall<Tools> &
  ({ needs: 'approval' | 'client'; elicitation?: never } | { needs: 'elicitation'; elicitation: Elicitation })

/**
 * What the server of a tool asks a person in the middle of a call. The answer goes to that server; the model reads neither.
 * All of it is the server's words, invisible characters removed.
 *
 * @example
 * for (const call of result.pending ?? [])
 *   if (call.needs === 'elicitation') run.addToolOutput(call, { action: 'accept', content: { seat: '12A' } })
 */
export type Elicitation = {
  /** Who asks. */
  server: string
  message: string
} & ElicitationMode

type ElicitationMode =
  /** A form: a flat object of texts, numbers, yes or no, and choices. */
  | { mode: 'form'; schema: ElicitationSchema; url?: never }
  /** A page to open, http or https; `accept` says that the person agrees to, not that all is done there. */
  | { mode: 'url'; url: string; schema?: never }

/** A JSON Schema of the few forms that a person can be asked for. */
export interface ElicitationSchema {
  type: 'object'
  properties: Record<string, ElicitationField>
  required?: string[]
}

/** A field of a form. */
export interface ElicitationField {
  type: 'string' | 'number' | 'integer' | 'boolean' | 'array'
  title?: string
  description?: string
  default?: ElicitationValue
  /** Of a text: characters. */
  minLength?: number
  maxLength?: number
  format?: 'email' | 'uri' | 'date' | 'date-time'
  /** Of a number. */
  minimum?: number
  maximum?: number
  /** A choice: one of these. */
  enum?: string[]
  /** Their names. */
  enumNames?: string[]
  oneOf?: { const: string; title: string }[]
  /** Several of them. */
  items?: { type?: 'string'; enum?: string[]; anyOf?: { const: string; title: string }[] }
  minItems?: number
  maxItems?: number
}

/** What a field of a form is answered with. */
export type ElicitationValue = string | number | boolean | string[]

/**
 * What a person answers: `decline` says no to what the server asks, `cancel` only that no answer was given.
 *
 * @example
 * const answer: ElicitationAnswer = { action: 'accept', content: { seat: '12A' } }
 */
export type ElicitationAnswer =
  | { action: 'accept'; content?: Record<string, ElicitationValue> }
  | { action: 'decline' | 'cancel'; content?: never }

/** A call of the run's own, or one of a sub-agent's: `path` tells them apart. */
export type UnansweredCall<Tools = AnyTools> = OwnUnansweredCall<Tools> | SubAgentUnansweredCall

/** One for each tool, so that comparing `name` says which it is. */
type OwnUnansweredCall<Tools> = {
  [Name in keyof Tools & string]: UnansweredCallBase & { name: Name; path?: never }
}[keyof Tools & string]

interface SubAgentUnansweredCall extends UnansweredCallBase {
  name: string
  /** The sub-agent that asks, by the names of the tools that lead to it, outermost first. */
  path: string[]
}

interface UnansweredCallBase {
  /** Of a sub-agent's call: the ids of the calls that lead to it, with slashes in between. */
  callId: string
  /** JSON text. */
  arguments: string
  /** Of name and arguments: an answer that carries it is refused for any other call. */
  fingerprint: string
  /**
   * The message that makes the call; of a sub-agent's call, with the messages that lead to it and slashes in between. A
   * model may make the same call again, under the same id: an answer with a `messageId` is refused for the other one.
   */
  messageId?: string
  /** It was running when the process died, and may have had its effect already. */
  interrupted?: true
  /** The provider carries it out, with these arguments: it can be approved or rejected, and not be edited. */
  hosted?: true
}

/**
 * A run at rest. Its `state` says what else is there: `error` in ERROR and where a limit or a shield ended the run,
 * `pending` in WAITING_FOR_INPUT.
 *
 * `Output` is what the agent's output schema gives, `never` without one; `Tools` are the agent's.
 */
export type RunResult<Output = unknown, Tools = AnyTools> =
  | CompletedResult<Output>
  | StoppedResult<Output>
  | CancelledResult<Output>
  | WaitingResult<Tools>
  | PausedResult
  | StoreErrorResult

/** The result of a run so far, in any state. */
interface CommonResult {
  /** The model's last answer; the parts of a continued answer are joined. Never an internal message. */
  output: string
  /** The whole transcript of the session. Every tool call in it has its result, except those that wait. */
  messages: readonly Message[]
  /** What this run has used. */
  usage: Usage
  /** Accepted model responses of this run. */
  steps: number
  sessionId: string
  runId: string
}

/** The model has ended its turn. */
export interface CompletedResult<Output = unknown> extends EndedResult<Output> {
  state: 'COMPLETED'
  reason: 'end_turn' | 'max_tokens' | 'refusal' | 'content_filter'
  /** The end could not be written to the store. */
  error?: RunFailure
}

/** The run was cancelled. */
export interface CancelledResult<Output = unknown> extends EndedResult<Output> {
  state: 'CANCELLED'
  reason: 'cancelled'
  /** The end could not be written to the store. */
  error?: RunFailure
}

/** A limit, a shield or a failure ended the run, or a guard halted it. */
export interface StoppedResult<Output = unknown> extends EndedResult<Output> {
  state: 'TIMED_OUT' | 'MAX_STEPS' | 'BUDGET_EXCEEDED' | 'BLOCKED' | 'ERROR'
  reason: Exclude<Reason, 'end_turn' | 'refusal' | 'content_filter' | 'cancelled' | WaitingReason>
  /** What happened, and what to do. */
  error: RunFailure
}

type WaitingReason = 'approval' | 'tool_output' | 'message' | 'paused' | 'sleeping'

interface EndedResult<Output> extends CommonResult {
  /** True in PAUSED and WAITING_FOR_INPUT, and where a store could not be written: the same run can be resumed. */
  resumable: false
  /**
   * With an output schema: `output` as an object, validated. Made by the runtime: if you run the machine without it,
   * call `agent.withObject(result)`.
   */
  object?: Output
  /** With an output schema: why there is no `object`. `output` is the raw text then. */
  outputProblem?: string
  pending?: never
}

/** The run waits for a person, for the client, or for the next message. */
export interface WaitingResult<Tools = AnyTools> extends RestingResult {
  state: 'WAITING_FOR_INPUT'
  reason: 'approval' | 'tool_output' | 'message'
  /** The calls that wait; none where a message is waited for. */
  pending: PendingCall<Tools>[]
  error?: never
}

/** The run rests until it is resumed: `pause()` was called, a guard halted it, or it sleeps. */
export interface PausedResult extends RestingResult {
  state: 'PAUSED'
  reason: Exclude<Reason, 'approval' | 'tool_output' | 'message'>
  /** When it goes on, where it sleeps: milliseconds since the epoch. */
  wakeAt?: number
  /** Why a guard halted it, or what failed and is tried again. */
  error?: RunFailure
  pending?: never
}

/**
 * The store could not be written, and the run ended here. `agent.resume` or the next `runSession` resumes it from the
 * last record of its log.
 *
 * @example
 * if (result.state === 'ERROR' && result.resumable) await agent.resume(result.sessionId)
 */
export interface StoreErrorResult extends RestingResult {
  state: 'ERROR'
  reason: 'store_error'
  error: RunFailure
  pending?: never
}

interface RestingResult extends CommonResult {
  resumable: true
  object?: never
  outputProblem?: never
}

/**
 * A run that is at work, or was when its process died; only `agent.replay()` returns one.
 *
 * @example
 * const { run: latest } = await agent.replay('ann')
 * if (latest?.state === 'RUNNING') await agent.resume('ann') // its process is gone
 */
export interface RunInProgress extends CommonResult {
  state: 'RUNNING' | 'WAITING_FOR_TOOL'
  reason: Reason
  resumable: false
  /** What failed and is tried again. */
  error?: RunFailure
  object?: never
  outputProblem?: never
  pending?: never
}
