import type { AssistantMessage, ToolCall, UserMessage } from './messages.js'
import type { AgentState, Reason } from './outcome.js'
import type { ResultStatus } from './results.js'
import type { Usage } from './usage.js'

/** What a run tells the world, without the stamp (`id`, `runId`, `seq`, `at`) that the runtime adds. */
export type Announcement =
  | { type: 'session_started'; sessionId: string }
  | { type: 'state_changed'; from: AgentState | null; to: AgentState; reason: Reason | null }
  | { type: 'user_message'; message: UserMessage }
  | {
      type: 'stream_chunk'
      stepId: string
      /** 1 for the first attempt of a step. */
      attempt: number
      /** The new text; empty on a closing chunk. */
      text: string
      reasoning?: string
      /** True exactly once an attempt, however it ends. */
      finished: boolean
      /** True on the first chunk of a later attempt: forget what this step has shown so far. */
      reset?: true
    }
  | { type: 'assistant_message'; stepId: string; message: AssistantMessage; partial?: true }
  | { type: 'tool_call'; stepId: string; call: ToolCall }
  | { type: 'tool_progress'; callId: string; name: string; progress: unknown }
  | {
      type: 'tool_result'
      callId: string
      name: string
      status: ResultStatus
      content: string
      durationMs: number
      truncated?: true
    }
  | { type: 'usage'; stepId: string; step: Usage; run: Usage; session: Usage }
  | {
      type: 'retry'
      stepId: string
      /** The attempt that comes next. */
      attempt: number
      delayMs: number
      code: string
      message: string
    }
  | {
      type: 'guardrail'
      guard: Reason
      action: 'nudge' | 'block' | 'halt' | 'recover'
      /** What was seen, cut to 600 characters. */
      evidence: string
      message: string
    }
  | { type: 'budget_warning'; message: string; remainingTokens: number | null; remainingCost: number | null }
  | { type: 'approval_requested'; callId: string; name: string; arguments: string }
  | { type: 'warning'; code: string; message: string }
  | { type: 'error'; code: string; message: string; recoverable: boolean }
  | { type: 'session_ended'; state: AgentState; reason: Reason }

/** Where and when an event happened. `seq` counts from 1 within a run, without gaps. */
export interface Stamp {
  id: string
  runId: string
  seq: number
  /** Milliseconds since the epoch. */
  at: number
}

export type AgentEvent = Announcement & Stamp
