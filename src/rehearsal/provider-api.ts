import type { Envelope } from './chat-completion.js'
import type { Refusal } from './refusal.js'
import type { ChatRequest } from './chat-request.js'
import type { TurnEncoder } from './planned-response.js'
import type { CallLimits } from './request-problem.js'
import type { Turn } from './turn-schema.js'

/** What an API has of its own: how its requests are read, how turns are said in it, and how it refuses. */
export interface ProviderApi {
  name: 'chat' | 'responses' | 'messages' | 'gemini'
  /** How many calls a message may have, and how long their ids may be. Default: as in chats. */
  limits?: CallLimits
  /** Begins the ids of answers. */
  idPrefix: string
  /** A body as a Chat Completions request; some APIs have a part of it in the path. @throws Refusal */
  readRequest(sent: unknown, path: string): ChatRequest
  /** What is wrong with a body that only this API has rules for, in one sentence; null when nothing is. */
  findStrictProblem(sent: unknown, request: ChatRequest): { message: string; param: string } | null
  createEncoder(turn: Turn, request: ChatRequest, envelope: Envelope): TurnEncoder
  formatRefusal(refusal: Refusal): object
}
