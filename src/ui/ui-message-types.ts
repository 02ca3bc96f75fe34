import type { Run } from '../core/run/run.js'

/** The client's version: `ai` 7, or `ai` 6, which supports neither text resets nor steering. */
export type Protocol = 'v7' | 'v6'

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
  | SourcePart
  | { type: 'file'; url: string; mediaType: string }
  | { type: 'steering-message'; id: string; parts: UserPart[] }
  | { type: `data-${string}`; id?: string; data: unknown; transient?: boolean }
  | { type: 'message-metadata'; messageMetadata: MessageMetadata }
  | { type: 'finish'; finishReason: FinishReason }
  | { type: 'abort'; reason?: string }
  | { type: 'error'; errorText: string }

/** A tool call. A sub-agent's call is `dynamic`, and its title shows the path of agents. */
interface NamedCall {
  toolCallId: string
  toolName: string
  dynamic?: boolean
  title?: string
}

export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'interrupted' | 'other'

export interface MessageMetadata {
  /** Whether the message is queued. Set on user messages that wait for their turn. */
  queued?: true
  usage?: { inputTokens: number; outputTokens: number; totalTokens: number; cost: number | null }
}

/** A message for `useChat({ messages })`. */
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
  | SourcePart
  | { type: 'steering-message'; id: string; parts: UserPart[] }
  | { type: 'step-start' }
  | { type: `data-${string}`; id?: string; data: unknown }

type UserPart = { type: 'text'; text: string; state?: 'done' } | FilePart

export interface FilePart {
  type: 'file'
  url: string
  mediaType: string
  filename?: string
}

export type SourcePart =
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }

type Invocation = { toolCallId: string; title?: string } & (
  | { state: 'input-available'; input: unknown }
  | { state: 'approval-requested'; input: unknown; approval: { id: string } }
  | { state: 'approval-responded'; input: unknown; approval: { id: string; approved: true } }
  | { state: 'output-available'; input: unknown; output: unknown }
  | { state: 'output-error'; input: unknown; errorText: string }
  | { state: 'output-denied'; input: unknown; approval: { id: string; approved: false; reason?: string } }
)

type InputChunk = Extract<UIMessageChunk, { type: 'tool-input-available' }>

/** A chunk for `useChat`, which calls `onToolCall` for an input unless `providerExecuted` is set. */
export type PageChunk = UIMessageChunk | (InputChunk & { providerExecuted: boolean })

/** The chunks for the `ai` 7 (`v7`) or `ai` 6 (`v6`) client. */
export type ChunkOf<Version extends Protocol> = Version extends 'v7'
  ? PageChunk
  :
      | Exclude<PageChunk, { type: 'reset-step' | 'steering-message' | 'finish' }>
      | { type: 'finish'; finishReason: Exclude<FinishReason, 'interrupted'> }

/**
 * The messages of an agent for `useChat`, with its tools. A part for the tool `transfer` has the type `tool-transfer`,
 * and its `input` has the type of the tool's arguments. The page does not know the results of tools, so `output` is
 * unknown. For `ai` 6 and 7.
 *
 * `Agent`: type of an agent, such as one that the server exports.
 *
 * @example
 * type ChatMessage = InferUIMessage<typeof agent>
 * const calls = (message: ChatMessage) => message.parts.filter((part) => part.type === 'tool-add').map((part) => part.input)
 */
export type InferUIMessage<Agent extends { run(...args: never[]): unknown }> = ToolMessage<
  InferUITools<Agent>
>

/**
 * The tools of an agent as the type parameter `TOOLS` of the AI SDK's `UIMessage`: `{ add: { input, output } }`.
 *
 * @example type Input = InferUITools<typeof agent>['add']['input']
 */
export type InferUITools<Agent extends { run(...args: never[]): unknown }> =
  ReturnType<Agent['run']> extends Run<infer _Output, infer Tools>
    ? [Tools] extends [never]
      ? AnyUITools
      : { [Name in keyof Tools & string]: { input: Tools[Name]; output: unknown } }
    : AnyUITools

type AnyUITools = Record<string, { input: unknown; output: unknown }>

export interface ToolMessage<Tools = AnyUITools> {
  id: string
  role: 'system' | 'user' | 'assistant'
  metadata?: MessageMetadata
  parts: ToolMessagePart<Tools>[]
}

type ToolMessagePart<Tools> =
  | Exclude<UIMessagePart, { toolCallId: string } | { type: 'text' | 'reasoning' | 'steering-message' }>
  | { type: 'text' | 'reasoning'; text: string; state?: 'streaming' | 'done' }
  | { [Name in keyof Tools & string]: { type: `tool-${Name}` } & CallState<Tools[Name]> }[keyof Tools &
      string]
  | ({ type: 'dynamic-tool'; toolName: string } & CallState<{ input: unknown; output: unknown }>)

type InputOf<Tool> = Tool extends { input: infer Input } ? Input : unknown
type OutputOf<Tool> = Tool extends { output: infer Output } ? Output : unknown

interface NoOutput {
  output?: never
  errorText?: never
}

type CallState<Tool> = { toolCallId: string; title?: string; providerExecuted?: boolean } & (
  | ({ state: 'input-streaming'; input: DeepPartial<InputOf<Tool>> | undefined } & NoOutput)
  | { state: 'output-available'; input: InputOf<Tool>; output: OutputOf<Tool>; errorText?: never }
  | { state: 'output-error'; input: InputOf<Tool> | undefined; output?: never; errorText: string }
  | ({ input: InputOf<Tool> } & NoOutput &
      (
        | { state: 'input-available' }
        | { state: 'approval-requested'; approval: { id: string; approved?: never; reason?: never } }
        | { state: 'approval-responded'; approval: { id: string; approved: boolean; reason?: string } }
        | { state: 'output-denied'; approval: { id: string; approved: false; reason?: string } }
      ))
)

type DeepPartial<Value> = Value extends object ? { [Key in keyof Value]?: DeepPartial<Value[Key]> } : Value
