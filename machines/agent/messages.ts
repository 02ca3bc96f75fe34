import type { Json, JsonObject } from './json.js'

export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } }
  | { type: 'input_audio'; input_audio: { data: string; format: 'wav' | 'mp3' } }
  | { type: 'file'; file: { file_data?: string; file_id?: string; filename?: string } }

export type MediaPart = Exclude<ContentPart, { type: 'text' }>

/** A tool call by the model. `arguments` is the exact JSON text that the model wrote. */
export interface ToolCall {
  /** The id of the call. The result of the call refers to this id. */
  id: string
  type: 'function'
  function: { name: string; arguments: string }
  /** Provider data to be sent back with the call, such as Gemini's thought signatures. */
  extra_content?: Json
  /** The model made the call through `call_tool`. Requests contain the original call. */
  dispatched?: true
  /** The provider runs the call and asks for approval. A person can approve or reject it, but not edit it. */
  hosted?: HostedCallOrigin
}

export interface HostedCallOrigin {
  /** The API and provider, in the format of `ProviderItems`. */
  from: string
  /** The provider's name for the tool's server. The call's name starts with it. */
  server: string
}

interface MessageBase {
  /** The id of the message, unique within the session. */
  id: string
  /** Milliseconds since the epoch. */
  createdAt: number
  /** Written by the loop. Hidden from user interfaces, and emitted without a `user_message` event. */
  internal?: true
  /** Internal notes, never sent to a model. `reason` explains why an internal message exists. */
  data?: JsonObject
}

/** A message from the loop to the model, such as a summary. The agent's `instructions` are not in the transcript. */
export interface SystemMessage extends MessageBase {
  role: 'system'
  content: string
}

export interface UserMessage extends MessageBase {
  role: 'user'
  /** A text, or text, image, audio and file parts. */
  content: string | ContentPart[]
}

export interface AssistantMessage extends MessageBase {
  role: 'assistant'
  /** The text, or null if there is none. */
  content: string | null
  /** Each call has one result directly after this message, in call order, unless it still waits. */
  tool_calls?: ToolCall[]
  refusal?: string
  /** Reasoning, for display only. */
  reasoning?: string
  /** Structured reasoning that must be sent back unchanged to some providers (OpenRouter). */
  reasoning_details?: Json[]
  media?: MediaPart[]
  /** Sources: pages and documents that the provider read. */
  annotations?: Annotation[]
  /** Items to send back to this provider only. */
  provider_items?: ProviderItems
  /** The model that answered. See `withFallbacks`. */
  by?: string
}

/** A source for an answer, in the Chat Completions shape. */
export type Annotation =
  | { type: 'url_citation'; url_citation: { url: string; title?: string } }
  | { type: 'file_citation'; file_citation: { filename: string; title?: string } }

/**
 * Items such as encrypted reasoning or hosted calls. They go back complete, in order and unchanged, and to no other provider.
 */
export interface ProviderItems {
  /** The API and provider. The items are sent to no other provider. */
  from: string
  /**
   * As the provider sent them, except that text in the message is replaced by its length, and calls omit name and
   * arguments. If an edited message no longer matches its items, it is sent without them.
   */
  items: Json[]
}

export interface ToolMessage extends MessageBase {
  role: 'tool'
  /** The `id` of the call. */
  tool_call_id: string
  content: string
  /** Returned media. `content` has a line of text for each item. */
  media?: MediaPart[]
}

/** A message in the transcript, as plain JSON: Chat Completions plus `id`, `createdAt` and notes. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

export function getLastUserText(messages: readonly Message[]): string {
  const last = messages.findLast((message) => message.role === 'user' && !message.internal)
  if (last?.role !== 'user') return ''
  const { content } = last
  if (typeof content === 'string') return content
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** A memory snippet for a user message. It is data for the model, never instructions. */
export interface RetrievedSnippet {
  /** Source for people and the model, such as a file name, a URL or a title. */
  source: string
  text: string
  /** Relevance, higher is better. The scale depends on the retriever. */
  score?: number
}

/** According to the handoff notes on results. Null for the session's first agent. */
export function findSpeaker(messages: readonly Message[]): string | null {
  const readNote = ({ role, data }: Message) => (role === 'tool' ? readHandoff(data?.['handoff']) : undefined)
  const last = messages.findLast((message) => readNote(message) !== undefined)
  return (last && readNote(last)) ?? null
}

export function readHandoff(note: unknown): string | undefined {
  const { to } = (note ?? {}) as { to?: unknown }
  return typeof to === 'string' ? to : undefined
}

export function getStepId(context: { runId: string; steps: number; lastMessageNumber: number }): string {
  return `${context.runId}.${context.lastMessageNumber}.${context.steps + 1}`
}

/** The number of a step in its run, or null for a foreign id. */
export function parseStepNumber(stepId: string): number | null {
  const [, number] = /\.(\d+)$/.exec(stepId) ?? []
  return number === undefined ? null : Number(number)
}

/** Formats a message id. Message numbers of a session start at 1. */
export function formatMessageId(number: number): string {
  return `m${number}`
}

/** The id of the message that a step will produce, which is known while the step streams. */
export function getMessageIdOfStep(stepId: string): string {
  return formatMessageId(Number(stepId.split('.').at(-2)) + 1)
}

/** The number of a message, or null for a foreign id. */
export function parseMessageNumber(id: string): number | null {
  const [, number] = /^m(\d+)$/.exec(id) ?? []
  return number === undefined ? null : Number(number)
}
