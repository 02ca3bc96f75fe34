import type { OpenAI } from 'openai'
import type { ModelResponse } from '../../../machines/agent/response.js'
import { describeError } from '../../tools/describe-error.js'
import { toModelFailure } from '../failures.js'
import { ModelError, type ModelProvider, type ModelRequest, type ModelRequestOptions } from '../provider.js'
import { abortable } from './abortable.js'
import { loadClient } from './client.js'
import { baseURLOf, checkCredentials } from './credentials.js'
import { reasoningEchoAt } from './echo-reasoning.js'
import { checkOptions, type OpenAIChatOptions } from './options.js'
import { providerName } from './provider-name.js'
import { readAnswer } from './read-answer.js'
import { createBodyBuilder } from './request-body.js'
import { SentSecrets } from './sent-secrets.js'
import { structuredOutputAt } from './structured-output-at.js'

export type { OpenAIChatOptions } from './options.js'

/**
 * A model behind an OpenAI-compatible Chat Completions API, reached through the `openai` client.
 *
 * @example
 * openaiChat({ model: 'gpt-5-mini' })                                              // OPENAI_API_KEY
 * openaiChat({ model: 'qwen3', baseURL: 'http://localhost:11434/v1' })             // a local server needs no key
 * openaiChat({ model: 'my-deployment', client: new AzureOpenAI({ apiVersion }) })  // a client of one's own
 *
 * @throws ConfigError for options that no request could be made with. A request rejects with a `ModelError`, or with
 * the signal's reason.
 */
export function openaiChat(options: OpenAIChatOptions): ModelProvider {
  checkOptions(options)
  const provider = options.provider ?? providerName(baseURLOf(options))
  const bodies = createBodyBuilder({
    model: options.model,
    maxTokensField: options.maxTokensField ?? defaultMaxTokensField(provider),
    echoReasoning: reasoningEchoAt(provider, options.echoReasoning),
    // Mistral refuses fields that it does not know, and sends the usage anyway.
    streamOptions: provider !== 'mistral',
    isMistral: isMistral(provider, options.model),
  })

  // A client or a fetch of the user's may want to see the body, and Azure's needs it for the URL: these get it as object.
  const writes = options.client === undefined && options.fetch === undefined

  const secrets = new SentSecrets(options)
  const { apiKey } = options
  const noted = typeof apiKey === 'function' ? { ...options, apiKey: () => secrets.noted(apiKey()) } : options

  let loading: Promise<OpenAI> | undefined
  async function load(): Promise<OpenAI> {
    if (options.client !== undefined) return options.client
    loading ??= loadClient(noted)
    try {
      return await loading
    } catch (error) {
      // The key may be set by the time of the next request.
      loading = undefined
      throw error
    }
  }

  async function attempt(request: ModelRequest, callbacks: ModelRequestOptions): Promise<ModelResponse> {
    let client: OpenAI | undefined
    try {
      client = await load()
      const body = bodies.body(request)
      const written = writes ? { body: bodies.encode(body), headers: jsonHeaders } : {}
      const response = await client.chat.completions
        .create(body as unknown as OpenAI.ChatCompletionCreateParams, {
          ...written,
          signal: callbacks.signal,
          maxRetries: 0,
          ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs }),
        })
        .asResponse()
      callbacks.onActivity('keep_alive')
      return await readAnswer(response, callbacks)
    } catch (error) {
      // Now it has the key that this request went with.
      secrets.noteClient(client)
      throw toModelError(error, secrets)
    }
  }

  const structuredOutput = structuredOutputAt(provider)
  return {
    provider,
    model: options.model,
    ...(structuredOutput && { structuredOutput }),
    check: () => checkCredentials(options),
    request: (request, { signal, onDelta, onActivity }) =>
      abortable(signal, (own) =>
        attempt(request, { signal: own, onDelta: request.stream ? onDelta : nothing, onActivity }),
      ),
  }
}

const nothing = () => undefined

/** As a `ModelError`, without what the provider was sent in confidence: neither do its causes repeat it. */
function toModelError(error: unknown, secrets: SentSecrets): ModelError {
  const failure = toModelFailure(error, Date.now())
  const hidden = secrets.hiddenIn(failure)
  if (hidden !== null || secrets.areIn(describeError(error))) return new ModelError(hidden ?? failure)
  return error instanceof ModelError ? error : new ModelError(failure, { cause: error })
}

const jsonHeaders = { 'content-type': 'application/json' }

/** Mistral's models keep their own rules wherever they are served. */
function isMistral(provider: string, model: string): boolean {
  return provider === 'mistral' || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(model)
}

function defaultMaxTokensField(provider: string): 'max_tokens' | 'max_completion_tokens' {
  return provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'
}
