/** The client side of `chatHandler`: transport for `useChat`, typed messages, and readable errors. */
export {
  type ChatTransport,
  type ChatTransportOptions,
  chatTransport,
  type HeaderValues,
} from './chat-transport.js'
export { ChatError, type ConnectionState } from './connection.js'
export type { ReconnectOptions, SendOptions, SentMessage } from './http-chat.js'
export type { ChunkOf, InferUIMessage, InferUITools, ToolMessage } from '../ui-message-types.js'
