import type { Message } from '../../../machines/agent/messages.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import { checkedResponse } from '../../core/models/checked-response.js'
import { toModelFailure } from '../../core/models/failures.js'
import type { ModelProvider, ModelRequest } from '../../core/models/provider.js'
import { Broken, shown } from '../verdict.js'
import type { ProviderServer, ProviderTurn } from './server.js'

/** What a check has to work with: a provider, and the server that it asks. */
export interface Scene {
  provider: ModelProvider
  server: ProviderServer
  /** Whether answers are to be streamed. */
  stream: boolean
  /** Aborts when the time of the check is over. */
  over: AbortSignal
}

/** What came of a request, and what was told meanwhile. */
export interface Heard {
  response: ModelResponse
  text: string
  reasoning: string
  /** Pieces of text. */
  pieces: number
  /** How often something of the answer was said to have arrived. */
  activity: number
}

const nothing: Omit<ModelRequest, 'stream'> = {
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
}

export const hello: Message = { role: 'user', id: 'm1', createdAt: 0, content: 'Hello?' }

/** One request, as the loop makes it. */
export async function ask(
  { provider, stream }: Scene,
  request: Partial<ModelRequest> = {},
  signal: AbortSignal = new AbortController().signal,
  onText: (text: string) => void = () => undefined,
): Promise<Heard> {
  const heard = { text: '', reasoning: '', pieces: 0, activity: 0 }
  const answer = await provider.request(
    { ...nothing, messages: [hello], stream, ...request },
    {
      signal,
      onSent: () => undefined,
      onDelta: (text, reasoning) => {
        heard.text += text
        heard.reasoning += reasoning
        if (text !== '') heard.pieces += 1
        onText(heard.text)
      },
      onActivity: (kind = 'content') => {
        if (kind === 'content') heard.activity += 1
      },
    },
  )
  return { response: checkedResponse(answer), ...heard }
}

/** The failure that a request ends with, as the loop sees it. @throws Broken when it does not fail */
export async function failureOf(scene: Scene, request: Partial<ModelRequest> = {}): Promise<ModelFailure> {
  const outcome = await ask(scene, request).then(
    ({ response }) => ({ response }),
    (error: unknown) => ({ error }),
  )
  if ('error' in outcome) return toModelFailure(outcome.error)
  throw new Broken(`it should have failed, but answered ${shown(outcome.response.text)}`)
}

/** Waits for something that happens soon, as long as the check has time. */
export async function soon({ over }: Scene, isSo: () => boolean): Promise<void> {
  while (!isSo() && !over.aborted) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** What a check is called, what it promises, what the server plays for it, and how it is found out. */
export interface Check {
  name: string
  /** Left out: of streams and of whole answers alike. */
  only?: 'stream' | 'whole'
  turns: ProviderTurn[]
  run(scene: Scene): Promise<void>
}
