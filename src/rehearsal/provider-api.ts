import type { Envelope } from './chat-completion.js'
import type { Refusal } from './refusal.js'
import type { ChatRequest } from './chat-request.js'
import type { TurnEncoder } from './planned-response.js'
import type { CallLimits } from './request-problem.js'
import type { Turn } from './turn-schema.js'

/** The API-specific parts: reading requests, encoding turns, and refusals. */
export interface ProviderApi {
  name: 'chat' | 'responses' | 'messages' | 'gemini'
  /** How many calls a message may have, and how long their ids may be. Default: as in chats. */
  limits?: CallLimits
  /** Begins the ids of answers. */
  idPrefix: string
  /** A body as a Chat Completions request; some APIs have a part of it in the path. @throws Refusal */
  readRequest(sent: unknown, path: string): ChatRequest
  /** A violation of this API's own rules, as a sentence; null when there is none. */
  findStrictProblem(sent: unknown, request: ChatRequest): { message: string; param: string } | null
  createEncoder(turn: Turn, request: ChatRequest, envelope: Envelope): TurnEncoder
  formatRefusal(refusal: Refusal): object
}
