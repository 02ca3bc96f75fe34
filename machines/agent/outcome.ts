import type { Message } from './messages.js'
import type { Usage } from './usage.js'

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

export type FinalState = Exclude<AgentState, 'RUNNING' | 'WAITING_FOR_TOOL' | 'WAITING_FOR_INPUT' | 'PAUSED'>

/** Why a run stands where it stands: one word of a closed list. */
export type Reason =
  | 'end_turn'
  | 'max_tokens'
  | 'refusal'
  | 'content_filter'
  | 'shield'
  | 'cancelled'
  | 'timeout'
  | 'max_steps'
  | 'token_budget'
  | 'output_tokens'
  | 'cost_limit'
  | 'context_overflow'
  | 'repeated_call'
  | 'repeated_output'
  | 'cycle'
  | 'repeated_failure'
  | 'policy_denied'
  | 'terminal_delegation'
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

export interface RunError {
  /** The reason again, or the provider's own code (`insufficient_quota`, `model_not_found`, …). */
  code: string
  /** A sentence that says what happened and what to do. */
  message: string
  /** True when trying again later, or resuming, can succeed. */
  recoverable: boolean
}

export interface RunResult {
  state: AgentState
  reason: Reason
  /** The model's last words; pieces of a continued answer joined. Never a message of ours. */
  output: string
  /** The whole transcript of the session. Every tool call in it has its result, except those that wait. */
  messages: readonly Message[]
  /** What this run has used. */
  usage: Usage
  /** Accepted model responses of this run. */
  steps: number
  error?: RunError
  /** In WAITING_FOR_INPUT: the calls that wait for a person or for the client. */
  pending?: { callId: string; name: string; arguments: string; needs: 'approval' | 'client' }[]
  /** True in PAUSED and WAITING_FOR_INPUT: the same run can go on. */
  resumable: boolean
  sessionId: string
  runId: string
}
