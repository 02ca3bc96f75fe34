/** The page's side of `chatHandler`: a transport for `useChat`, typed messages, and errors that people can read. */
export { ChatError } from './chat-error.js'
export {
  type ChatTransport,
  type ChatTransportOptions,
  chatTransport,
  type HeaderValues,
} from './chat-transport.js'
export type { ConnectionState } from './connection.js'
export type { ReconnectOptions, SendOptions, SentMessage } from './http-chat.js'
export type { ChunkOf, InferUIMessage, InferUITools, ToolMessage } from './ui-message-types.js'
