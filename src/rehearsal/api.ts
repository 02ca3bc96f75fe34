import type { Envelope } from './completion.js'
import type { Refusal } from './refusal.js'
import type { ChatRequest } from './request.js'
import type { Speech } from './response.js'
import type { Limits } from './strict.js'
import type { Turn } from './turn.js'

/** What an API has of its own: how its requests are read, how turns are said in it, and how it refuses. */
export interface Api {
  name: 'chat' | 'responses' | 'messages' | 'gemini'
  /** How many calls a message may have, and how long their ids may be. Default: as in chats. */
  limits?: Limits
  /** Begins the ids of answers. */
  idPrefix: string
  /** A body as a Chat Completions request; some APIs have a part of it in the path. @throws Refusal */
  read(sent: unknown, path: string): ChatRequest
  /** What is wrong with a body that only this API has rules for, in one sentence; null when nothing is. */
  strictProblem(sent: unknown, request: ChatRequest): { message: string; param: string } | null
  speech(turn: Turn, request: ChatRequest, envelope: Envelope): Speech
  refusalBody(refusal: Refusal): object
}
