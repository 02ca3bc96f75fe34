/** Agents behind pages: the server's side of the AI SDK's `useChat`, and events for pages of one's own. */
export type { Authorize, Grant } from '../web/authorize.js'
export type { ChatAgent } from '../web/chats.js'
export type { ErrorFormatter, ExposeOptions } from '../web/exposure.js'
export type { FileIds } from '../web/page-files.js'
export type { ErrorContext, OnError } from '../web/refused.js'
export { chatHandler, type ChatHandlerOptions } from './chat-handler.js'
export type {
  FinishReason,
  MessageMetadata,
  Protocol,
  UIMessage,
  UIMessageChunk,
  UIMessagePart,
} from './chunks.js'
export { toEventStreamResponse, type EventStreamOptions } from './event-stream.js'
export { foldTranscript, type Transcript, type TranscriptItem } from './fold-transcript.js'
export { toUIMessageStream, toUIMessageStreamResponse, type UIStreamOptions } from './stream.js'
export { toUIMessages } from './ui-messages.js'
