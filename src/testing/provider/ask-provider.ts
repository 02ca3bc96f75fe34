import type { Message } from '../../../machines/agent/messages.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import { normalizeResponse } from '../../core/models/normalize-response.js'
import { toModelFailure } from '../../core/models/to-model-failure.js'
import type { ModelProvider, ModelRequest } from '../../core/models/provider.js'
import { CheckFailure, formatValue } from '../check-assertions.js'
import type { ProviderServer, ProviderTurn } from './provider-server.js'

/** The provider of a check, and its server. */
export interface ProviderScene {
  provider: ModelProvider
  server: ProviderServer
  /** Whether answers are to be streamed. */
  stream: boolean
  /** Aborts when the time of the check is over. */
  over: AbortSignal
}

/** An answer, with what was streamed. */
export interface ProviderAnswer {
  response: ModelResponse
  text: string
  reasoning: string
  /** Pieces of text. */
  pieces: number
  /** How often something of the answer was said to have arrived. */
  activity: number
}

const emptyRequest: Omit<ModelRequest, 'stream'> = {
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
}

export const hello: Message = { role: 'user', id: 'm1', createdAt: 0, content: 'Hello?' }

/** One request, as the loop makes it. */
export async function askProvider(
  { provider, stream }: ProviderScene,
  request: Partial<ModelRequest> = {},
  signal: AbortSignal = new AbortController().signal,
  onText: (text: string) => void = () => undefined,
): Promise<ProviderAnswer> {
  const collected = { text: '', reasoning: '', pieces: 0, activity: 0 }
  const answer = await provider.request(
    { ...emptyRequest, messages: [hello], stream, ...request },
    {
      signal,
      onSent: () => undefined,
      onDelta: (text, reasoning) => {
        collected.text += text
        collected.reasoning += reasoning
        if (text !== '') collected.pieces += 1
        onText(collected.text)
      },
      onActivity: (kind = 'content') => {
        if (kind === 'content') collected.activity += 1
      },
    },
  )
  return { response: normalizeResponse(answer), ...collected }
}

/** The failure that a request ends with, as the loop sees it. @throws CheckFailure when it does not fail */
export async function getFailure(
  scene: ProviderScene,
  request: Partial<ModelRequest> = {},
): Promise<ModelFailure> {
  const outcome = await askProvider(scene, request).then(
    ({ response }) => ({ response }),
    (error: unknown) => ({ error }),
  )
  if ('error' in outcome) return toModelFailure(outcome.error)
  throw new CheckFailure(`it should have failed, but answered ${formatValue(outcome.response.text)}`)
}

/** Waits for something that happens soon, as long as the check has time. */
export async function waitUntil({ over }: ProviderScene, isSo: () => boolean): Promise<void> {
  while (!isSo() && !over.aborted) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A check: its name, the server's turns, and its test. */
export interface ProviderCheckSpec {
  name: string
  /** Left out: of streams and of whole answers alike. */
  only?: 'stream' | 'whole'
  turns: ProviderTurn[]
  run(scene: ProviderScene): Promise<void>
}
