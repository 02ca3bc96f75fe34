import type { GuardName } from '../../guards/roster.js'
import type { Message } from './messages.js'
import type { Usage } from './usage.js'

/** The states of a run: the first two are active, the others resting or final. */
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

export function isWorkState(state: AgentState | null | undefined): state is 'RUNNING' | 'WAITING_FOR_TOOL' {
  return state === 'RUNNING' || state === 'WAITING_FOR_TOOL'
}

/** Whether a run rests in this state until an answer or `resume()`. */
export function isRestState(state: AgentState | null | undefined): state is 'WAITING_FOR_INPUT' | 'PAUSED' {
  return state === 'WAITING_FOR_INPUT' || state === 'PAUSED'
}

export type FinalState = Exclude<AgentState, 'RUNNING' | 'WAITING_FOR_TOOL' | 'WAITING_FOR_INPUT' | 'PAUSED'>

/** Why a run is in its state. */
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
  /** The reason, or the provider's code (`insufficient_quota`, `model_not_found`, …). */
  code: string
  /** A sentence that states what happened and what to do. */
  message: string
  /** Whether a retry or resume can succeed. */
  recoverable: boolean
  /** The shared budget that refused the next request. */
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

/** For `Tools`: matches the tools of any agent. */
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
  server: string
  message: string
} & ElicitationMode

type ElicitationMode =
  /** A form: a flat object of texts, numbers, yes or no, and choices. */
  | { mode: 'form'; schema: ElicitationSchema; url?: never }
  /** A page to open (http or https). `accept` means that the person agrees, not that the task there is done. */
  | { mode: 'url'; url: string; schema?: never }

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
  /** For a text, in characters. */
  minLength?: number
  maxLength?: number
  format?: 'email' | 'uri' | 'date' | 'date-time'
  /** For a number. */
  minimum?: number
  maximum?: number
  /** A choice of one. */
  enum?: string[]
  /** Display names. */
  enumNames?: string[]
  oneOf?: { const: string; title: string }[]
  /** A choice of several. */
  items?: { type?: 'string'; enum?: string[]; anyOf?: { const: string; title: string }[] }
  minItems?: number
  maxItems?: number
}

/** The value of a form field. */
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

/** A call of the run or of a sub-agent; `path` distinguishes them. */
export type UnansweredCall<Tools = AnyTools> = OwnUnansweredCall<Tools> | SubAgentUnansweredCall

/** One type per tool, so that comparing `name` narrows it. */
type OwnUnansweredCall<Tools> = {
  [Name in keyof Tools & string]: UnansweredCallBase & { name: Name; path?: never }
}[keyof Tools & string]

interface SubAgentUnansweredCall extends UnansweredCallBase {
  name: string
  /** Tool names that lead to the sub-agent, outermost first. */
  path: string[]
}

interface UnansweredCallBase {
  /** Call ids that lead to it, separated by slashes. */
  callId: string
  /** JSON. */
  arguments: string
  /** Identifies name and arguments. An answer with another fingerprint is refused. */
  fingerprint: string
  /**
   * The message that makes the call; of a sub-agent's call, with the messages that lead to it and slashes in between. A
   * model may make the same call again, under the same id: an answer with a `messageId` is refused for the other one.
   */
  messageId?: string
  /** Running when the process died, so it may have had its effect. */
  interrupted?: true
  /** The provider runs it, so it can be approved or rejected but not edited. */
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

/** Fields of a result in any state. */
interface CommonResult {
  /** The model's last answer, with continued parts joined. Never an internal message. */
  output: string
  /** The session's transcript. Each call has its result, except those that wait. */
  messages: readonly Message[]
  /** Usage of this run. */
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
  /** Set if the end could not be written to the store. */
  error?: RunFailure
}

export interface CancelledResult<Output = unknown> extends EndedResult<Output> {
  state: 'CANCELLED'
  reason: 'cancelled'
  /** Set if the end could not be written to the store. */
  error?: RunFailure
}

/** A limit, a shield or a failure ended the run, or a guard halted it. */
export interface StoppedResult<Output = unknown> extends EndedResult<Output> {
  state: 'TIMED_OUT' | 'MAX_STEPS' | 'BUDGET_EXCEEDED' | 'BLOCKED' | 'ERROR'
  reason: Exclude<Reason, 'end_turn' | 'refusal' | 'content_filter' | 'cancelled' | WaitingReason>
  error: RunFailure
}

type WaitingReason = 'approval' | 'tool_output' | 'message' | 'paused' | 'sleeping'

interface EndedResult<Output> extends CommonResult {
  /** Whether the run can be resumed: in PAUSED, WAITING_FOR_INPUT, and after a store failure. */
  resumable: false
  /**
   * With an output schema: the validated object. The runtime creates it. With the bare machine, call
   * `agent.withObject(result)`.
   */
  object?: Output
  /** With an output schema: why there is no `object`. `output` is the raw text. */
  outputProblem?: string
  pending?: never
}

export interface WaitingResult<Tools = AnyTools> extends RestingResult {
  state: 'WAITING_FOR_INPUT'
  reason: 'approval' | 'tool_output' | 'message'
  /** Waiting calls; empty when a message is awaited. */
  pending: PendingCall<Tools>[]
  error?: never
}

/** The run rests until it is resumed: by `pause()`, a guard, or a sleep. */
export interface PausedResult extends RestingResult {
  state: 'PAUSED'
  reason: Exclude<Reason, 'approval' | 'tool_output' | 'message'>
  /** Wake time of a sleeping run, in milliseconds since the epoch. */
  wakeAt?: number
  /** Why a guard paused it, or the failure to be retried. */
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
  /** The failure to be retried. */
  error?: RunFailure
  object?: never
  outputProblem?: never
  pending?: never
}
