import type { OpenAI } from 'openai'
import type { ModelResponse } from '../../../machines/agent/response.js'
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
  })

  // A client or a fetch of the user's may want to see the body, and Azure's needs it for the URL: these get it as object.
  const writes = options.client === undefined && options.fetch === undefined

  let loading: Promise<OpenAI> | undefined
  async function load(): Promise<OpenAI> {
    if (options.client !== undefined) return options.client
    loading ??= loadClient(options)
    try {
      return await loading
    } catch (error) {
      // The key may be set by the time of the next request.
      loading = undefined
      throw error
    }
  }

  async function attempt(request: ModelRequest, callbacks: ModelRequestOptions): Promise<ModelResponse> {
    try {
      const client = await load()
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
      callbacks.onActivity()
      return await readAnswer(response, callbacks)
    } catch (error) {
      throw toModelError(error, options)
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

/** As a `ModelError`, without the key, whatever its form. */
function toModelError(error: unknown, { apiKey }: OpenAIChatOptions): ModelError {
  const failure = toModelFailure(error, Date.now())
  if (typeof apiKey !== 'string' || apiKey.length < 8 || !failure.message.includes(apiKey)) {
    return error instanceof ModelError ? error : new ModelError(failure, { cause: error })
  }
  return new ModelError({ ...failure, message: failure.message.replaceAll(apiKey, '[redacted]') })
}

const jsonHeaders = { 'content-type': 'application/json' }

function defaultMaxTokensField(provider: string): 'max_tokens' | 'max_completion_tokens' {
  return provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'
}
