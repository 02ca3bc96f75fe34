import type { Approval, Approvers } from './approvals.js'
import type { GuardName } from '../../guards/roster.js'
import type { Message } from './messages.js'
import type { Usage } from './usage.js'

/** The states of a run. The first two are active; the others are resting or final. */
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

export const agentStates = /* @__PURE__ */ Object.keys(knownStates) as readonly AgentState[]

export function isWorkState(state: AgentState | null | undefined): state is 'RUNNING' | 'WAITING_FOR_TOOL' {
  return state === 'RUNNING' || state === 'WAITING_FOR_TOOL'
}

/** Whether a run in this state rests until an answer or `resume()`. */
export function isRestState(state: AgentState | null | undefined): state is 'WAITING_FOR_INPUT' | 'PAUSED' {
  return state === 'WAITING_FOR_INPUT' || state === 'PAUSED'
}

/** Whether a run in this state works. A run that has just started has no state yet. */
export function isActiveState(state: AgentState | null): state is 'RUNNING' | 'WAITING_FOR_TOOL' | null {
  return state === null || isWorkState(state)
}

export function isFinalState(state: AgentState | null): state is FinalState {
  return !isActiveState(state) && !isRestState(state)
}

/** The final states of a run that a limit, a shield, a failure or a guard has stopped. */
export const failedStates: ReadonlySet<string | null> = /* @__PURE__ */ new Set(
  /* @__PURE__ */ agentStates.filter(
    (state) => isFinalState(state) && state !== 'COMPLETED' && state !== 'CANCELLED',
  ),
)

export const openStates = ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'] as const

export type FinalState = Exclude<AgentState, (typeof openStates)[number]>

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
  | 'approval_expired'

export interface RunFailure {
  /** The run's reason, or the provider's code (`insufficient_quota`, `model_not_found`, …). */
  code: string
  /** A sentence that states the cause and a remedy. */
  message: string
  /** Whether a retry or a resume can succeed. */
  recoverable: boolean
  /** The shared budget that refused the next request. */
  budget?: string
}

/** The end of a run that did not fully answer its user message, or the reason why a run rests in PAUSED. */
export interface TurnEnd {
  messageId: string
  state: AgentState
  reason: Reason
  error?: Pick<RunFailure, 'code' | 'message'>
  /** The time when a sleeping run continues, in milliseconds since the epoch. */
  wakeAt?: number
}

/** A `Tools` value that matches the tools of any agent. */
export type AnyTools = never

/**
 * A call that waits for an answer.
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
 * A question that a tool's server asks a person during a call. The answer goes to that server, and the model sees
 * neither the question nor the answer. The text comes from the server, with invisible characters removed.
 * @example
 * for (const call of result.pending ?? [])
 *   if (call.needs === 'elicitation') run.addToolOutput(call, { action: 'accept', content: { seat: '12A' } })
 */
export type Elicitation = {
  server: string
  message: string
} & ElicitationMode

type ElicitationMode =
  /** A form: a flat object of strings, numbers, booleans and choices. */
  | { mode: 'form'; schema: ElicitationSchema; url?: never }
  /** A page to open (http or https). `accept` means that the person agrees, not that the task on the page is done. */
  | { mode: 'url'; url: string; schema?: never }

export interface ElicitationSchema {
  type: 'object'
  properties: Record<string, ElicitationField>
  required?: string[]
}

export interface ElicitationField {
  type: 'string' | 'number' | 'integer' | 'boolean' | 'array'
  title?: string
  description?: string
  default?: ElicitationValue
  /** Limit in characters, for a string. */
  minLength?: number
  maxLength?: number
  format?: 'email' | 'uri' | 'date' | 'date-time'
  /** Limit for a number. */
  minimum?: number
  maximum?: number
  /** A single choice. */
  enum?: string[]
  /** Display names of the choices. */
  enumNames?: string[]
  oneOf?: { const: string; title: string }[]
  /** A multiple choice. */
  items?: { type?: 'string'; enum?: string[]; anyOf?: { const: string; title: string }[] }
  minItems?: number
  maxItems?: number
}

export type ElicitationValue = string | number | boolean | string[]

/**
 * A person's answer. `decline` refuses the server's request; `cancel` dismisses it without an answer.
 * @example
 * const answer: ElicitationAnswer = { action: 'accept', content: { seat: '12A' } }
 */
export type ElicitationAnswer =
  | { action: 'accept'; content?: Record<string, ElicitationValue> }
  | { action: 'decline' | 'cancel'; content?: never }

/** A waiting call of the run or of a sub-agent. `path` distinguishes the two. */
export type UnansweredCall<Tools = AnyTools> = OwnUnansweredCall<Tools> | SubAgentUnansweredCall

/** One type per tool, so that checking `name` narrows the type. */
type OwnUnansweredCall<Tools> = {
  [Name in keyof Tools & string]: UnansweredCallBase & { name: Name; path?: never }
}[keyof Tools & string]

interface SubAgentUnansweredCall extends UnansweredCallBase {
  name: string
  /** Names of the tools that lead to the sub-agent, outermost first. */
  path: string[]
}

interface UnansweredCallBase {
  /** Ids of the calls that lead to the sub-agent, separated by slashes. */
  callId: string
  /** The arguments as JSON text. */
  arguments: string
  /** Identifies the call's name and arguments. An answer with another fingerprint is rejected. */
  fingerprint: string
  /**
   * A model may reuse a call id, so an answer with a `messageId` applies only to the call of that message. For a
   * sub-agent's call, the ids of the messages that lead to it come first, separated by slashes.
   */
  messageId?: string
  /** Why a policy asks for approval. */
  reason?: string
  /** Who may approve. All conditions must be met. Absent if anyone may approve. */
  approvers?: readonly Approvers[]
  /** The approvals so far, if more than one is required. */
  approvals?: readonly Approval[]
  /** In milliseconds since the epoch. Then the call can neither be approved nor start. Absent if it does not expire. */
  expiresAt?: number
  /** What happens when the question expires. If absent, the call gets an error result and the run continues. */
  onExpiry?: 'pause' | 'cancel'
  /** The call was running when the process died, so it may have taken effect. */
  interrupted?: true
  /** The provider runs the call, so it can be approved or rejected but not edited. */
  hosted?: true
}

/**
 * `state` determines the other fields. `error` is set in ERROR and if a limit or a shield ended the run. `pending` is
 * set in WAITING_FOR_INPUT. `Output` is the type of the agent's output schema, or `never` without one.
 */
export type RunResult<Output = unknown, Tools = AnyTools> =
  | CompletedResult<Output>
  | StoppedResult<Output>
  | CancelledResult<Output>
  | WaitingResult<Tools>
  | PausedResult
  | StoreErrorResult

interface CommonResult {
  /** The model's final answer, with the parts of a continued answer joined. Never an internal message. */
  output: string
  /** The session's transcript. Each call has its result unless the call is still waiting. */
  messages: readonly Message[]
  /** Usage of this run. */
  usage: Usage
  /** Accepted model responses of this run. */
  steps: number
  sessionId: string
  runId: string
}

export interface CompletedResult<Output = unknown> extends EndedResult<Output> {
  state: 'COMPLETED'
  reason: 'end_turn' | 'max_tokens' | 'refusal' | 'content_filter'
  /** The store's error. Set if the final record could not be written. */
  error?: RunFailure
}

export interface CancelledResult<Output = unknown> extends EndedResult<Output> {
  state: 'CANCELLED'
  reason: 'cancelled' | 'approval_expired'
  /** The store's error. Set if the final record could not be written. */
  error?: RunFailure
}

/** The run was ended by a limit, a shield, a failure or a guard. */
export interface StoppedResult<Output = unknown> extends EndedResult<Output> {
  state: 'TIMED_OUT' | 'MAX_STEPS' | 'BUDGET_EXCEEDED' | 'BLOCKED' | 'ERROR'
  reason: Exclude<Reason, 'end_turn' | 'refusal' | 'content_filter' | 'cancelled' | WaitingReason>
  error: RunFailure
}

type WaitingReason = 'approval' | 'tool_output' | 'message' | 'paused' | 'sleeping' | 'approval_expired'

interface EndedResult<Output> extends CommonResult {
  /** Whether the run can be resumed. True in PAUSED, WAITING_FOR_INPUT, and after a store failure. */
  resumable: false
  /** Made by the runtime. With the bare machine, call `agent.withObject(result)`. */
  object?: Output
  /** Why `object` is missing, if the agent has an output schema. `output` is the raw text. */
  outputProblem?: string
  pending?: never
}

export interface WaitingResult<Tools = AnyTools> extends RestingResult {
  state: 'WAITING_FOR_INPUT'
  reason: 'approval' | 'tool_output' | 'message'
  /** Waiting calls. Empty if the run waits for a message. */
  pending: PendingCall<Tools>[]
  /** The time when the next question expires, in milliseconds since the epoch. */
  wakeAt?: number
  error?: never
}

/** The run rests until it is resumed, after `pause()`, a guard halt, a sleep or an expired question. */
export interface PausedResult extends RestingResult {
  state: 'PAUSED'
  reason: Exclude<Reason, 'approval' | 'tool_output' | 'message'>
  /** The time when a sleeping run wakes, in milliseconds since the epoch. */
  wakeAt?: number
  /** Why a guard paused the run, or the failure that will be retried. */
  error?: RunFailure
  pending?: never
}

/**
 * The store could not be written to, so the run stopped in this process. `agent.resume` or the next `runSession`
 * resumes the run from the last record of its log.
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
 * A run that is active, or was active when its process died. Only `agent.replay()` returns this type.
 * @example
 * const { run: latest } = await agent.replay('ann')
 * if (latest?.state === 'RUNNING') await agent.resume('ann') // its process is gone
 */
export interface RunInProgress extends CommonResult {
  state: 'RUNNING' | 'WAITING_FOR_TOOL'
  reason: Reason
  resumable: false
  /** The failure that will be retried. */
  error?: RunFailure
  object?: never
  outputProblem?: never
  pending?: never
}
