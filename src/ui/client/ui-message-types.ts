import type { Run } from '../../core/run/run.js'
import type { FinishReason, MessageMetadata, Protocol, UIMessagePart } from '../ui-message-chunks.js'
import type { PageChunk } from './replayed-calls.js'

/** What the server sends to the client of `ai` 7 (`v7`) or `ai` 6 (`v6`). */
export type ChunkOf<Version extends Protocol> = Version extends 'v7'
  ? PageChunk
  :
      | Exclude<PageChunk, { type: 'reset-step' | 'steering-message' | 'finish' }>
      | { type: 'finish'; finishReason: Exclude<FinishReason, 'interrupted'> }

/**
 * The messages of an agent for `useChat`, with its tools: the parts of `transfer` have the type `tool-transfer`, and the type
 * of its arguments as `input`. What a tool returns is not known to the page: `output` is unknown.
 *
 * `Agent`: the type of an agent, or of one that the server exports. For `ai` 6 and 7.
 *
 * @example
 * type ChatMessage = InferUIMessage<typeof agent>
 * const calls = (message: ChatMessage) => message.parts.filter((part) => part.type === 'tool-add').map((part) => part.input)
 */
export type InferUIMessage<Agent extends { run(...args: never[]): unknown }> = ToolMessage<
  InferUITools<Agent>
>

/**
 * The tools of an agent as the type parameter `TOOLS` of the AI SDK's own `UIMessage`: `{ add: { input, output } }`.
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

/** A message whose tools are known. */
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

/** A call of a tool, in the states that it goes through. */
type CallState<Tool> = { toolCallId: string; title?: string; providerExecuted?: boolean } & (
  | {
      state: 'input-streaming'
      input: DeepPartial<InputOf<Tool>> | undefined
      output?: never
      errorText?: never
    }
  | { state: 'input-available'; input: InputOf<Tool>; output?: never; errorText?: never }
  | {
      state: 'approval-requested'
      input: InputOf<Tool>
      output?: never
      errorText?: never
      approval: { id: string; approved?: never; reason?: never }
    }
  | {
      state: 'approval-responded'
      input: InputOf<Tool>
      output?: never
      errorText?: never
      approval: { id: string; approved: boolean; reason?: string }
    }
  | { state: 'output-available'; input: InputOf<Tool>; output: OutputOf<Tool>; errorText?: never }
  | { state: 'output-error'; input: InputOf<Tool> | undefined; output?: never; errorText: string }
  | {
      state: 'output-denied'
      input: InputOf<Tool>
      output?: never
      errorText?: never
      approval: { id: string; approved: false; reason?: string }
    }
)

type DeepPartial<Value> = Value extends object ? { [Key in keyof Value]?: DeepPartial<Value[Key]> } : Value
