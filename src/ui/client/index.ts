/** The client side of `chatHandler`: transport for `useChat`, typed messages, and readable errors. */
export {
  type ChatTransport,
  chatTransport,
  type ChatTransportOptions,
  type HeaderValues,
  type ReconnectOptions,
  type SendOptions,
  type SentMessage,
} from './chat-transport.js'
export { ChatError, type ConnectionState } from './connection.js'
export type { ChunkOf, InferUIMessage, InferUITools, ToolMessage } from '../ui-message-types.js'
