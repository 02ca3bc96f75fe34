/** Agents for pages: the server side of the AI SDK's `useChat`, and event streams for your own pages. */
export type { Authorize, Grant } from '../web/authorize.js'
export type { ChatAgent } from '../web/chat-agent.js'
export type { ErrorFormatter, ExposeOptions } from '../web/exposure.js'
export type { FileIds } from '../web/page-files.js'
export type { HandlerHooks, HookContext } from '../web/run-hooks.js'
export type { WhenBusy } from '../web/message-queue.js'
export type { ErrorContext, OnError } from '../web/error-response.js'
export { chatHandler, type ChatHandlerOptions } from './chat-handler.js'
export type {
  FinishReason,
  MessageMetadata,
  Protocol,
  UIMessage,
  UIMessageChunk,
  UIMessagePart,
} from './ui-message-chunks.js'
export { toEventStreamResponse, type EventStreamOptions } from './event-stream.js'
export { foldTranscript, type Transcript, type TranscriptItem } from './fold-transcript.js'
export { toUIMessageStream, toUIMessageStreamResponse, type UIStreamOptions } from './ui-message-stream.js'
export { toUIMessages } from './ui-messages.js'
