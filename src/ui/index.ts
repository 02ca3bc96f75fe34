/** The server side of the AI SDK's `useChat`, and event streams for custom pages. */
export type { Authorize, Grant } from '../web/authorize.js'
export type { ChatAgent, WhenBusy } from '../web/subscription.js'
export type { ErrorFormatter, ExposeOptions } from '../web/exposure.js'
export type { FileIds } from '../web/page-files.js'
export type { HandlerHooks, HookContext } from '../web/run-hooks.js'
export type { ErrorContext, OnError } from '../web/error-response.js'
export { chatHandler, type ChatHandlerOptions } from './chat-handler.js'
export type {
  FinishReason,
  MessageMetadata,
  Protocol,
  UIMessage,
  UIMessageChunk,
  UIMessagePart,
} from './ui-message-types.js'
export { foldTranscript, type Transcript, type TranscriptItem } from './fold-transcript.js'
export {
  type EventStreamOptions,
  toEventStreamResponse,
  toUIMessageStream,
  toUIMessageStreamResponse,
  type UIStreamOptions,
} from './run-streams.js'
export { toUIMessages } from './ui-messages.js'
