// The types of the stream that `useChat` reads. `AnswerFold` makes the chunks.

/**
 * The client's version: `ai` 7, or `ai` 6, which supports neither resets of text nor steering.
 */
export type Protocol = 'v7' | 'v6'

/** A part of the stream that `useChat` reads, as the AI SDK defines it. */
export type UIMessageChunk =
  | { type: 'start'; messageId: string; messageMetadata?: MessageMetadata }
  | { type: 'start-step' }
  | { type: 'finish-step' }
  | { type: 'reset-step' }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | ({ type: 'tool-input-start' } & NamedCall)
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | ({ type: 'tool-input-available'; input: unknown } & NamedCall)
  | ({ type: 'tool-input-error'; input: unknown; errorText: string } & NamedCall)
  | { type: 'tool-approval-request'; toolCallId: string; approvalId: string }
  | { type: 'tool-output-available'; toolCallId: string; output: unknown }
  | { type: 'tool-output-error'; toolCallId: string; errorText: string }
  | { type: 'tool-output-denied'; toolCallId: string }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'file'; url: string; mediaType: string }
  | { type: 'steering-message'; id: string; parts: UserPart[] }
  | { type: `data-${string}`; id?: string; data: unknown; transient?: boolean }
  | { type: 'message-metadata'; messageMetadata: MessageMetadata }
  | { type: 'finish'; finishReason: FinishReason }
  | { type: 'abort'; reason?: string }
  | { type: 'error'; errorText: string }

/** A tool call. A sub-agent's call is `dynamic`, and its title has the agents that lead to it. */
interface NamedCall {
  toolCallId: string
  toolName: string
  dynamic?: boolean
  title?: string
}

/** Why a message ends, in the terms of the AI SDK. Only `ai` 7 has `interrupted`. */
export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'interrupted' | 'other'

/** The metadata of a message. */
export interface MessageMetadata {
  /** Of a user message that waits for its turn. */
  queued?: true
  /** The run's usage so far. */
  usage?: { inputTokens: number; outputTokens: number; totalTokens: number; cost: number | null }
}

/** A message as `useChat` takes it: `useChat({ messages })`. */
export interface UIMessage {
  id: string
  role: 'user' | 'assistant'
  metadata?: MessageMetadata
  parts: UIMessagePart[]
}

export type UIMessagePart =
  | UserPart
  | { type: 'reasoning'; text: string; state?: 'done' }
  | ({ type: `tool-${string}` } & Invocation)
  | ({ type: 'dynamic-tool'; toolName: string } & Invocation)
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'steering-message'; id: string; parts: UserPart[] }
  | { type: 'step-start' }
  | { type: `data-${string}`; id?: string; data: unknown }

type UserPart =
  | { type: 'text'; text: string; state?: 'done' }
  | { type: 'file'; url: string; mediaType: string; filename?: string }

type Invocation = { toolCallId: string; title?: string } & (
  | { state: 'input-available'; input: unknown }
  | { state: 'approval-requested'; input: unknown; approval: { id: string } }
  | { state: 'approval-responded'; input: unknown; approval: { id: string; approved: true } }
  | { state: 'output-available'; input: unknown; output: unknown }
  | { state: 'output-error'; input: unknown; errorText: string }
  | { state: 'output-denied'; input: unknown; approval: { id: string; approved: false; reason?: string } }
)
