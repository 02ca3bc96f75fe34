import { abortable, abortBehind } from '../../base/abort.js'
import { lazily } from '../../base/load.js'
import type { ModelProvider } from '../provider.js'
import type { ReasoningEcho } from './echo-reasoning.js'
import { baseURLOf, checkCredentials, endpointOf } from './credentials.js'
import type { OpenAIOptions } from './options.js'
import { providerName } from './provider-name.js'
import { forbidsCallsAt, structuredOutputAt } from './structured-output-at.js'
import type { Wire } from './wire.js'

/** A provider that speaks one of the APIs. What it speaks with is loaded when the first request is made. */
export function providerOver(
  options: OpenAIOptions,
  wireAt: (provider: string) => Promise<Wire>,
  echoAt: (provider: string) => ReasoningEcho = () => 'none',
): ModelProvider {
  const provider = options.provider ?? providerName(baseURLOf(options))
  const exchange = lazily(async () => {
    const [{ createExchange }, wire] = await Promise.all([import('./exchange.js'), wireAt(provider)])
    return createExchange(options, wire)
  })
  const structuredOutput = structuredOutputAt(provider)
  const echo = echoAt(provider)
  const endpoint = endpointOf(options)
  return {
    provider,
    model: options.model,
    ...(endpoint && { endpoint }),
    ...(structuredOutput && { structuredOutput }),
    ...(forbidsCallsAt(provider) && { canForbidCalls: true }),
    ...(options.media && { media: options.media }),
    ...(echo !== 'none' && { echoesReasoning: echo === 'with_calls' ? echo : ('always' as const) }),
    check: () => checkCredentials(options),
    request: (request, options) =>
      abortable(abortBehind(options) ?? options.signal, async (abort) => {
        const { onSent, onActivity, onHostedCall: onHosted, onWarning } = options
        const onDelta = request.stream ? options.onDelta : nothing
        const answer = await exchange()
        return answer(request, { abort, onSent, onActivity, onDelta, onHosted, onWarning })
      }),
  }
}

const nothing = () => undefined
