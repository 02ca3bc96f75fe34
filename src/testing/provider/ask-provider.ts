import type { Message } from '../../../machines/agent/messages.js'
import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import { normalizeResponse } from '../../core/models/normalize-response.js'
import { toModelFailure } from '../../core/models/to-model-failure.js'
import type { ModelProvider, ModelRequest } from '../../core/models/provider.js'
import { CheckFailure, expectSame, expectTrue, formatValue } from '../check-assertions.js'

/** The vocabulary of the checks, which import this module as `t`. */
export { CheckFailure, expectSame as same, expectTrue as ok, formatValue as show }

/** The fields of a rehearsal turn that the checks use for one response from the test server. */
export interface ProviderTurn {
  text?: string | undefined
  reasoning?: string | undefined
  toolCalls?:
    | { id?: string | undefined; name: string; arguments?: Record<string, unknown> | string | undefined }[]
    | undefined
  /** Chat Completions values: `stop`, `length`, `tool_calls`, `content_filter`. */
  finishReason?: string | undefined
  /** `null` means not reported. `cached` is part of `input`. */
  usage?: { input: number; output: number; cached?: number | undefined } | null | undefined
  /** An HTTP error, with its body and `Retry-After` in seconds. */
  status?: number | undefined
  error?: { message: string; type?: string | undefined } | undefined
  retryAfter?: number | undefined
  /** Characters per delta. */
  chunkSize?: number | undefined
  /** Sends the bytes one by one. */
  split?: 'bytes' | undefined
  /** The connection breaks, or stops sending, after this many deltas. `true` means no response at all. */
  cutAfter?: number | undefined
  hang?: true | number | undefined
  /** The stream closes without an end marker. */
  endWithout?: 'both' | undefined
  /** Sends an error after this many deltas. */
  errorInStream?: { after: number; error: { message: string; type?: string | undefined } } | undefined
  /** Exact bytes to send instead of an answer. */
  raw?: { headers?: Record<string, string> | undefined; body: string } | undefined
}

/**
 * A server that plays one turn per request and records the requests. `startRehearsal` creates one for the APIs
 * of OpenAI, Anthropic and Gemini.
 */
export interface ProviderServer {
  readonly url: string
  /** The received requests, in arrival order. */
  readonly requests: readonly ServedRequest[]
  close(): Promise<void>
}

/** A received request, converted to Chat Completions. */
export interface ServedRequest {
  readonly body: {
    readonly messages: readonly ServedMessage[]
    readonly tools?:
      | readonly { readonly function?: { readonly name: string } | undefined }[]
      | null
      | undefined
    readonly stream?: boolean | null | undefined
  }
  /** Why the server rejected the request, or null. */
  readonly refused: string | null
  /** Whether the client closed the connection before the response ended. */
  readonly aborted: boolean
}

export interface ServedMessage {
  readonly role: string
  /** A text, or parts with a `text`. */
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

export function textOf({ content }: ServedMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => String(Reflect.get(part, 'text') ?? '')).join('\n')
}

export interface ProviderScene {
  provider: ModelProvider
  server: ProviderServer
  stream: boolean
  over: AbortSignal
}

export interface ProviderAnswer {
  response: ModelResponse
  text: string
  reasoning: string
  pieces: number
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

/** Makes one request in the same way as the loop. */
export async function ask(
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

/** The failure of a request as the loop receives it. @throws CheckFailure if it succeeds */
export async function failure(
  scene: ProviderScene,
  request: Partial<ModelRequest> = {},
): Promise<ModelFailure> {
  const outcome = await ask(scene, request).then(
    ({ response }) => ({ response }),
    (error: unknown) => ({ error }),
  )
  if ('error' in outcome) return toModelFailure(outcome.error)
  throw new CheckFailure(`it should have failed, but answered ${formatValue(outcome.response.text)}`)
}

export async function until({ over }: ProviderScene, isSo: () => boolean): Promise<void> {
  while (!isSo() && !over.aborted) await new Promise((resolve) => setTimeout(resolve, 5))
}

export interface ProviderCheckSpec {
  only?: 'stream'
  turns: ProviderTurn[]
  run(scene: ProviderScene): Promise<void>
}
