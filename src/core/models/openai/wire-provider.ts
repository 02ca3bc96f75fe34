import { runAbortable, findCallAbort } from '../../base/abort.js'
import { loadOnce } from '../../base/lazy-load.js'
import type { ModelProvider } from '../provider.js'
import type { ReasoningEcho } from './echo-reasoning.js'
import { getBaseURL, checkCredentials, findEndpoint } from './credentials.js'
import type { OpenAIOptions } from './openai-options.js'
import { getProviderName } from './provider-name.js'
import { canForbidCalls, findStructuredOutput } from './structured-output-support.js'
import type { ApiWire } from './api-wire.js'

/** A provider that speaks one of the APIs. What it speaks with is loaded when the first request is made. */
export function createWireProvider(
  options: OpenAIOptions,
  wireAt: (provider: string) => Promise<ApiWire>,
  echoAt: (provider: string) => ReasoningEcho = () => 'none',
): ModelProvider {
  const provider = options.provider ?? getProviderName(getBaseURL(options))
  const exchange = loadOnce(async () => {
    const [{ createExchange }, wire] = await Promise.all([import('./exchange.js'), wireAt(provider)])
    return createExchange(options, wire)
  })
  const structuredOutput = findStructuredOutput(provider)
  const echo = echoAt(provider)
  const endpoint = findEndpoint(options)
  const made: ModelProvider = {
    provider,
    model: options.model,
    ...(endpoint && { endpoint }),
    ...(structuredOutput && { structuredOutput }),
    ...(canForbidCalls(provider) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    ...(echo !== 'none' && { echoesReasoning: echo === 'with_calls' ? echo : ('always' as const) }),
    check: () => checkCredentials(options),
    request: (request, options) =>
      runAbortable(findCallAbort(options) ?? options.signal, async (abort) => {
        const { onSent, onActivity, onHostedCall: onHosted, onWarning } = options
        const onDelta = request.stream ? options.onDelta : ignoreDelta
        const onToolCall = request.stream ? options.onToolCallDelta : undefined
        const answer = await exchange()
        return answer(request, { abort, onSent, onActivity, onDelta, onToolCall, onHosted, onWarning })
      }),
  }
  return options.limiter?.limit(made) ?? made
}

const ignoreDelta = () => undefined
