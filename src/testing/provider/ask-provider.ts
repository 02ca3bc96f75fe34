import type { Message } from '../../../machines/agent/messages.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import { normalizeResponse } from '../../core/models/normalize-response.js'
import { toModelFailure } from '../../core/models/to-model-failure.js'
import type { ModelProvider, ModelRequest } from '../../core/models/provider.js'
import { CheckFailure, formatValue } from '../check-assertions.js'

/**
 * One answer of the server that a provider is checked against: the fields of a turn of a rehearsal that the suite uses.
 */
export interface ProviderTurn {
  /** What the model says, thinks, and asks for. */
  text?: string | undefined
  reasoning?: string | undefined
  toolCalls?:
    | { id?: string | undefined; name: string; arguments?: Record<string, unknown> | string | undefined }[]
    | undefined
  /** In the words of Chat Completions: `stop`, `length`, `tool_calls`, `content_filter`. */
  finishReason?: string | undefined
  /** What it has used; `null` when it does not say. `cached` is part of `input`. */
  usage?: { input: number; output: number; cached?: number | undefined } | null | undefined
  /** An HTTP error, with what it says and `Retry-After` in seconds. */
  status?: number | undefined
  error?: { message: string; type?: string | undefined } | undefined
  retryAfter?: number | undefined
  /** Characters a delta. */
  chunkSize?: number | undefined
  /** The bytes come one by one. */
  split?: 'bytes' | undefined
  /** After so many deltas the connection breaks, or falls silent; `true`: nothing ever comes. */
  cutAfter?: number | undefined
  hang?: true | number | undefined
  /** The stream closes without saying that it is at its end. */
  endWithout?: 'both' | undefined
  /** After so many deltas comes an error. */
  errorInStream?: { after: number; error: { message: string; type?: string | undefined } } | undefined
  /** These bytes, in place of an answer. */
  raw?: { headers?: Record<string, string> | undefined; body: string } | undefined
}

/**
 * A server that plays turns, one a request, and remembers what it was asked. `startRehearsal` makes one that speaks the
 * APIs of OpenAI, Anthropic and Gemini.
 */
export interface ProviderServer {
  /** Where it is. */
  readonly url: string
  /** What it was asked, in the order of arrival. */
  readonly requests: readonly ServedRequest[]
  close(): Promise<void>
}

/** A request that reached the server, in the words of Chat Completions whatever API it came by. */
export interface ServedRequest {
  readonly body: {
    readonly messages: readonly ServedMessage[]
    readonly tools?:
      | readonly { readonly function?: { readonly name: string } | undefined }[]
      | null
      | undefined
    readonly stream?: boolean | null | undefined
  }
  /** Why the server would not take it; null when it did. */
  readonly refused: string | null
  /** Whether the client has closed the connection before the answer was at its end. */
  readonly aborted: boolean
}

/** A message as the server got it. */
export interface ServedMessage {
  readonly role: string
  /** A text, or parts of which texts have a `text`. */
  readonly content?: string | readonly { readonly type: string }[] | null | undefined
  readonly tool_calls?:
    | readonly {
        readonly id: string
        readonly function: { readonly name: string; readonly arguments: string }
      }[]
    | null
    | undefined
  readonly tool_call_id?: string | undefined
}

/** The text of a message, its text parts joined. */
export function getMessageText({ content }: ServedMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => String(Reflect.get(part, 'text') ?? '')).join('\n')
}

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
