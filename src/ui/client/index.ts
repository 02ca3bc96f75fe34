/** The client side of `chatHandler`: transport for `useChat`, typed messages, and readable errors. */
export { type ChatTransport, chatTransport } from './chat-transport.js'
export { ChatError, type ConnectionState } from './connection.js'
export type {
  ChatTransportOptions,
  HeaderValues,
  ReconnectOptions,
  SendOptions,
  SentMessage,
} from './http-chat.js'
export type { ChunkOf, InferUIMessage, InferUITools, ToolMessage } from '../ui-message-types.js'
