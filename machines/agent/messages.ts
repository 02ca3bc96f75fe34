import type { Json, JsonObject } from './json.js'

/** One part of a user message, in the Chat Completions shape. */
export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } }
  | { type: 'input_audio'; input_audio: { data: string; format: 'wav' | 'mp3' } }
  | { type: 'file'; file: { file_data?: string; file_id?: string; filename?: string } }

/** A part that is no text: a picture, a sound, a document. */
export type MediaPart = Exclude<ContentPart, { type: 'text' }>

/** A call that the model asks for. `arguments` is the JSON text exactly as the model wrote it. */
export interface ToolCall {
  /** Its result carries the same. */
  id: string
  /** The only kind there is. */
  type: 'function'
  /** What is called, and with what. */
  function: { name: string; arguments: string }
  /** Provider data that must be sent back with the call (Gemini's thought signatures, for example). */
  extra_content?: Json
  /** The model has made it through `call_tool`: requests show it as it was written. */
  dispatched?: true
  /**
   * Set where it is the provider that would carry it out, and it asks whether it may: approved or rejected as it is.
   */
  hosted?: HostedCallOrigin
}

/** Where a call is carried out that is not the agent's own. */
export interface HostedCallOrigin {
  /** The API and the provider, as in `ProviderItems`. */
  from: string
  /** What the provider calls the server that has the tool. The call's name begins with it. */
  server: string
}

interface MessageBase {
  /** Unique within the session. */
  id: string
  /** Milliseconds since the epoch. */
  createdAt: number
  /** Written by the loop, not by a person: no `user_message` event, and no user interface shows it. */
  internal?: true
  /** Notes of ours about the message; never sent to a model. `reason` says why an internal message exists. */
  data?: JsonObject
}

/** Words of the loop's own to the model: a continuation, a summary. `instructions` are not in the transcript. */
export interface SystemMessage extends MessageBase {
  role: 'system'
  /** What it says. */
  content: string
}

/** What the user said. */
export interface UserMessage extends MessageBase {
  role: 'user'
  /** A text, or parts: texts, images, audio, files. */
  content: string | ContentPart[]
}

/** What the model said, or the calls that it asked for. */
export interface AssistantMessage extends MessageBase {
  role: 'assistant'
  /** Its words; null when there are none. */
  content: string | null
  /** The calls; each has exactly one result right after this message, in this order, unless it waits for an answer. */
  tool_calls?: ToolCall[]
  /** Why it declined, in its own words. */
  refusal?: string
  /** What the model thought aloud. Shown to people, not sent back. */
  reasoning?: string
  /** Structured reasoning that some providers want back unchanged (OpenRouter). */
  reasoning_details?: Json[]
  /** The pictures, sounds and documents that it made. */
  media?: MediaPart[]
  /** Its sources: pages and documents that the provider has read. */
  annotations?: Annotation[]
  /** What the provider that wrote it wants back with it. */
  provider_items?: ProviderItems
  /** Which of several models has said it: see `withFallbacks`. */
  by?: string
}

/** A source of an answer, in the Chat Completions shape. */
export type Annotation =
  | { type: 'url_citation'; url_citation: { url: string; title?: string } }
  | { type: 'file_citation'; file_citation: { filename: string; title?: string } }

/**
 * Items that a provider wants back with a message, complete, in order and unchanged: encrypted reasoning, calls of the
 * provider's own tools. Only that provider can read them.
 */
export interface ProviderItems {
  /** Whose they are: the API and the provider. No other is sent them. */
  from: string
  /**
   * As the provider gave them, but for what the message itself says, its words and its calls: there, they have the
   * length of the words, and no name and arguments. A message that was edited so that they fit it no more is sent
   * without them.
   */
  items: Json[]
}

/** The result of one call. */
export interface ToolMessage extends MessageBase {
  role: 'tool'
  /** The call's `id`. */
  tool_call_id: string
  /** What the model reads. */
  content: string
  /** The pictures, sounds and documents that it returned, too; `content` has a line in words for each. */
  media?: MediaPart[]
}

/** A message of the transcript: plain JSON in the Chat Completions shape, plus `id`, `createdAt` and notes. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** The text of what the user said last: what memory is searched for. */
export function getLastUserText(messages: readonly Message[]): string {
  const last = messages.findLast((message) => message.role === 'user' && !message.internal)
  if (last?.role !== 'user') return ''
  const { content } = last
  if (typeof content === 'string') return content
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** What memory found for a user message: data for the model, never instructions. */
export interface RetrievedSnippet {
  /** Where it comes from, for people and for the model: a file name, a URL, a title. */
  source: string
  /** What it says. */
  text: string
  /** How well it fits; higher is better. What the numbers mean is the retriever's own. */
  score?: number
}

/**
 * The agent that speaks after a transcript: the one that it was last handed to. Null: the session's first agent. The notes stand on the
 * results of the calls that handed it over.
 */
export function findSpeaker(messages: readonly Message[]): string | null {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    const to = message?.role === 'tool' && message.data ? readHandoff(message.data['handoff']) : undefined
    if (to !== undefined) return to
  }
  return null
}

/** The agent that a note names; undefined for anything else that stands there. */
export function readHandoff(note: unknown): string | undefined {
  const { to } = (note ?? {}) as { to?: unknown }
  return typeof to === 'string' ? to : undefined
}

/** The step that is under way, or comes next: unique within a session's transcript. */
export function getStepId(context: { runId: string; steps: number; lastMessageNumber: number }): string {
  return `${context.runId}.${context.lastMessageNumber}.${context.steps + 1}`
}

/** Which step of its run has this id; null where it has none of ours. */
export function parseStepNumber(stepId: string): number | null {
  const [, number] = /\.(\d+)$/.exec(stepId) ?? []
  return number === undefined ? null : Number(number)
}

/** Messages of a session are counted from one. */
export function formatMessageId(number: number): string {
  return `m${number}`
}

/** The message that a step of this id becomes, when it becomes one: known while it is still being written. */
export function getMessageIdOfStep(stepId: string): string {
  return formatMessageId(Number(stepId.split('.').at(-2)) + 1)
}

/** A message's number; null for one that came with an id of its own. */
export function parseMessageNumber(id: string): number | null {
  const [, number] = /^m(\d+)$/.exec(id) ?? []
  return number === undefined ? null : Number(number)
}
