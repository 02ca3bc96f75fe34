import type { OpenAI } from 'openai'
import type { ModelResponse } from '../../../../machines/agent/response.js'
import { describeError } from '../../base/describe-error.js'
import { toModelFailure } from '../failures.js'
import { ModelError, type ModelRequest } from '../provider.js'
import { askDirectly, type ExchangeOptions } from './ask-directly.js'
import { loadClient, type OwnClient } from './client.js'
import { reasoningEchoAt } from './echo-reasoning.js'
import { nodeHttp } from './node-http.js'
import type { OpenAIChatOptions } from './options.js'
import { readAnswer } from './read-answer.js'
import { createBodyBuilder, type RequestBody } from './request-body.js'
import { SentSecrets } from './sent-secrets.js'

/** Sends one request and reads its answer. Rejects with a `ModelError`. */
export type Exchange = (request: ModelRequest, options: ExchangeOptions) => Promise<ModelResponse>

/** How requests are made with these options. Loaded when the first one is, together with the client. */
export function createExchange(options: OpenAIChatOptions, provider: string): Exchange {
  const bodies = createBodyBuilder({
    model: options.model,
    maxTokensField: options.maxTokensField ?? defaultMaxTokensField(provider),
    echoReasoning: reasoningEchoAt(provider, options.echoReasoning),
    // Mistral refuses fields that it does not know, and sends the usage anyway.
    streamOptions: provider !== 'mistral',
    isMistral: isMistral(provider, options.model),
  })

  const secrets = new SentSecrets(options)
  const { apiKey } = options
  const noted = typeof apiKey === 'function' ? { ...options, apiKey: () => secrets.noted(apiKey()) } : options

  let loading: Promise<OwnClient> | undefined
  async function load(): Promise<OwnClient> {
    loading ??= loadClient(noted)
    try {
      return await loading
    } catch (error) {
      // The key may be set by the time of the next request.
      loading = undefined
      throw error
    }
  }

  async function askByFetch(
    client: OpenAI,
    body: RequestBody,
    isOurs: boolean,
    { abort, ...callbacks }: ExchangeOptions,
  ): Promise<ModelResponse> {
    // A client or a fetch of the user's may want to see the body, and Azure's needs it for the URL: these get it as object.
    const written = isOurs && { body: bodies.encode(body), headers: jsonHeaders, fetchOptions: unredirected }
    const { signal } = abort
    const sent = client.chat.completions
      .create(body as unknown as OpenAI.ChatCompletionCreateParams, {
        ...written,
        signal,
        maxRetries: 0,
        ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs }),
      })
      .asResponse()
    // The client still puts the request together, without waiting for anything.
    if (callbacks.onSent) setTimeout(callbacks.onSent, 0)
    const response = await sent
    callbacks.onActivity('keep_alive')
    return await readAnswer(response, { ...callbacks, signal })
  }

  return async (request, callbacks) => {
    let client: OpenAI | undefined
    try {
      const own = options.client === undefined ? await load() : null
      client = own ?? options.client
      const body = bodies.body(request)
      const isOurs = own !== null && options.fetch === undefined
      const node = isOurs && !own.logsRequests ? nodeHttp() : null
      if (isOurs && node !== null) return await askDirectly(node, own, bodies.encode(body), callbacks)
      return await askByFetch(client as OpenAI, body, isOurs, callbacks)
    } catch (error) {
      // Now it has the key that this request went with.
      secrets.noteClient(client)
      throw toModelError(error, secrets)
    }
  }
}

/** As a `ModelError`, without what the provider was sent in confidence: neither do its causes repeat it. */
function toModelError(error: unknown, secrets: SentSecrets): ModelError {
  const failure = toModelFailure(error, Date.now())
  const hidden = secrets.hiddenIn(failure)
  if (hidden !== null || secrets.areIn(describeError(error))) return new ModelError(hidden ?? failure)
  return error instanceof ModelError ? error : new ModelError(failure, { cause: error })
}

const jsonHeaders = { 'content-type': 'application/json' }

/** Where a redirect leads, nobody has said that the conversation may go. */
const unredirected = { redirect: 'manual' as const }

/** Mistral's models keep their own rules wherever they are served. */
function isMistral(provider: string, model: string): boolean {
  return provider === 'mistral' || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(model)
}

function defaultMaxTokensField(provider: string): 'max_tokens' | 'max_completion_tokens' {
  return provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'
}
