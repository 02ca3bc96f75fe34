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

/** A call that waits for somebody. */
export interface PendingAnswer {
  /** Of a sub-agent's call: the ids of the calls that lead to it, with slashes in between. */
  callId: string
  name: string
  /** JSON text. */
  arguments: string
  needs: 'approval' | 'client'
  /** Of name and arguments: an answer that carries it is refused for any other call. */
  fingerprint: string
  /** It was running when the process died, and may have had its effect already. */
  interrupted?: true
  /** The sub-agent that asks, by the names of the tools that lead to it, outermost first. Absent: the run itself asks. */
  path?: string[]
}

/** `Output` is what the agent's output schema gives; see `object`. */
export interface RunResult<Output = unknown> {
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
  /**
   * With an output schema: `output` as an object, validated. Made by the runtime: whoever runs the machine without it
   * asks `agent.withObject(result)`.
   */
  object?: Output
  /** With an output schema: why a run that has ended has no `object`. `output` is the raw text then. */
  outputProblem?: string
  /** In WAITING_FOR_INPUT: the calls that wait for a person or for the client. */
  pending?: PendingAnswer[]
  /** True in PAUSED and WAITING_FOR_INPUT: the same run can go on. */
  resumable: boolean
  sessionId: string
  runId: string
}
