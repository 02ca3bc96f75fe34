import type { Json } from '../../machines/agent/json.js'

export const protocolVersion = '1.0'

interface Base {
  /** Milliseconds since the epoch. */
  timestamp?: number
  metadata?: Record<string, Json>
}

/** `subagentRunId` names the sub-agent that the event belongs to. Absent for the agent itself. */
interface Attributed extends Base {
  subagentRunId?: string
}

/** The events of AG-UI 1.0 that Statewright sends, as plain JSON. */
export type AGUIEvent =
  | (Base & { type: 'RUN_STARTED'; threadId: string; runId: string; protocolVersion: string })
  | (Base & {
      type: 'RUN_FINISHED'
      threadId: string
      runId: string
      outcome: AGUIOutcome
      /** `{ state, reason }`, and `object` if the agent has an output schema. */
      result: Json
      usage?: AGUIUsage[]
    })
  | (Base & { type: 'RUN_ERROR'; message: string; code: string; usage?: AGUIUsage[] })
  | (Attributed & { type: 'STEP_STARTED' | 'STEP_FINISHED'; stepName: string })
  | (Attributed & { type: 'TEXT_MESSAGE_START'; messageId: string; role: 'assistant' })
  | (Attributed & { type: 'TEXT_MESSAGE_CONTENT'; messageId: string; delta: string })
  | (Attributed & { type: 'TEXT_MESSAGE_END'; messageId: string })
  | (Attributed & {
      type: 'TEXT_MESSAGE_CHUNK'
      messageId: string
      role: 'assistant' | 'user'
      delta: string
    })
  | (Attributed & { type: 'REASONING_START' | 'REASONING_END'; messageId: string })
  | (Attributed & { type: 'REASONING_MESSAGE_START'; messageId: string; role: 'reasoning' })
  | (Attributed & { type: 'REASONING_MESSAGE_CONTENT'; messageId: string; delta: string })
  | (Attributed & { type: 'REASONING_MESSAGE_END'; messageId: string })
  | (Attributed & {
      type: 'TOOL_CALL_START'
      toolCallId: string
      toolCallName: string
      parentMessageId: string
    })
  | (Attributed & { type: 'TOOL_CALL_ARGS'; toolCallId: string; delta: string })
  | (Attributed & { type: 'TOOL_CALL_END'; toolCallId: string })
  | (Attributed & {
      type: 'TOOL_CALL_RESULT'
      messageId: string
      toolCallId: string
      content: string | AGUIPart[]
      role: 'tool'
    })
  | (Base & { type: 'MESSAGES_SNAPSHOT'; messages: AGUIMessage[] })
  | (Base & { type: 'STATE_DELTA'; delta: { op: 'add'; path: string; value: Json }[] })
  | (Attributed & { type: 'CUSTOM'; name: string; value: Json })
  | (Base & {
      type: 'SUBAGENT_STARTED'
      subagentRunId: string
      name: string
      parentSubagentRunId?: string
      parentToolCallId?: string
    })
  | (Base & {
      type: 'SUBAGENT_FINISHED'
      subagentRunId: string
      outcome: { type: 'success' } | { type: 'suspended'; interruptIds: string[] }
    })
  | (Base & { type: 'SUBAGENT_ERROR'; subagentRunId: string; message: string; code: string })

/** An AG-UI run is complete, waits for answers, or was stopped by a user or a limit. */
export type AGUIOutcome =
  | {
      type: 'success'
      /** The calls for the client to execute. Their results are the last messages of the next input. */
      pendingToolCallIds?: string[]
    }
  | { type: 'interrupt'; interrupts: AGUIInterrupt[] }
  | { type: 'cancelled' }

/**
 * A request that a run waits for. Answer the request by its `id`, in `resume[]` of the next input. The id is valid only
 * for this call and these arguments.
 */
export interface AGUIInterrupt {
  id: string
  /**
   * A call needs approval (`tool_call`), a tool's server asks a person (`elicitation`), or the run waits to be
   * resumed (`paused`).
   */
  reason: 'tool_call' | 'elicitation' | 'paused'
  message: string
  toolCallId?: string
  subagentRunId?: string
  /** The JSON Schema of the answer's `payload`. */
  responseSchema: Record<string, Json>
  /** When the request expires, as an ISO date. If absent, the request never expires. */
  expiresAt?: string
  metadata?: Record<string, Json>
}

/** The usage of the run, including sub-agents. */
export interface AGUIUsage {
  inputTokens: number
  outputTokens: number
  totalTokens: number
  reasoningTokens: number
  cachedInputTokens: number
}

/** A part of a message: text, or media with its source. */
export type AGUIPart =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio' | 'video' | 'document'; source: AGUISource; metadata?: Json }

/** The source of media: base64 data, an address, or a file id from the provider. */
export type AGUISource =
  | { type: 'data'; value: string; mimeType: string }
  | { type: 'url'; value: string; mimeType?: string }
  | { type: 'file'; value: string; mimeType?: string }

export type AGUIMessage = { id: string; subagentRunId?: string } & (
  | { role: 'system'; content: string }
  | { role: 'user'; content: string | AGUIPart[] }
  | { role: 'assistant'; content?: string; toolCalls?: AGUICall[] }
  | { role: 'tool'; toolCallId: string; content: string | AGUIPart[]; error?: string }
  | { role: 'reasoning'; content: string }
)

export interface AGUICall {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

/** The end of a run that did not answer in full: in a thread's `ends` and the page's state (`/statewright`). */
export interface AGUIEnd {
  /** The id of the user message. */
  messageId: string
  /** `CANCELLED`, `TIMED_OUT`, `MAX_STEPS`, `BUDGET_EXCEEDED`, `BLOCKED`, `ERROR`, or `COMPLETED` for a truncated answer. */
  state: string
  reason: string
  code: string
  /** A sentence for users. */
  message: string
}
