import type { ModelProvider } from './provider.js'

/** The model with another `request`: all that it says of itself stays, also where its class has it as getters. */
export function replaceRequest(whole: ModelProvider, request: ModelProvider['request']): ModelProvider {
  const { provider, model, fallbacks, structuredOutput, canForbidCalls, searchesTools } = whole
  const { media, echoesReasoning, endpoint } = whole
  return {
    provider,
    model,
    ...(fallbacks && { fallbacks }),
    ...(structuredOutput && { structuredOutput }),
    ...(canForbidCalls !== undefined && { canForbidCalls }),
    ...(searchesTools !== undefined && { searchesTools }),
    ...(media && { media }),
    ...(echoesReasoning && { echoesReasoning }),
    ...(endpoint && { endpoint }),
    ...(whole.check && { check: () => whole.check?.() }),
    request,
  }
}
