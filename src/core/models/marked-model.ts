import type { Message, AssistantMessage } from '../../../machines/agent/messages.js'
import type { ModelProvider } from './provider.js'

export interface MarkedModel {
  name: string
  /** Messages with the data of other models removed. */
  strippedMessages: WeakMap<AssistantMessage, AssistantMessage>
}

/**
 * Removes data that only the model that produced it can use. Returns the same object for the same message, because
 * providers cache by identity.
 */
export function stripForeignEcho({ name, strippedMessages }: MarkedModel, message: Message): Message {
  if (message.role !== 'assistant' || message.by === undefined || message.by === name) return message
  const known = strippedMessages.get(message)
  if (known !== undefined) return known
  const { reasoning: _thoughts, reasoning_details: _details, provider_items: _items, ...rest } = message
  const { tool_calls: calls } = message
  const plain: AssistantMessage = {
    ...rest,
    ...(calls && { tool_calls: calls.map(({ extra_content: _extra, hosted: _hosted, ...call }) => call) }),
  }
  strippedMessages.set(message, plain)
  return plain
}

/**
 * Returns the model wrapped so that it marks its responses and does not receive data of other models. Models from
 * `withFallbacks` do this themselves.
 */
export function getMarkedModel(model: ModelProvider): ModelProvider {
  if (model.fallbacks) return model
  const known = markedModels.get(model) ?? createMarkedModel(model)
  markedModels.set(model, known)
  return known
}

const markedModels = new WeakMap<ModelProvider, ModelProvider>()

function createMarkedModel(whole: ModelProvider): ModelProvider {
  const mark: MarkedModel = { name: `${whole.provider}/${whole.model}`, strippedMessages: new WeakMap() }
  return replaceRequest(whole, async (request, options) => {
    const messages = request.messages.map((message) => stripForeignEcho(mark, message))
    return { ...(await whole.request({ ...request, messages }, options)), by: mark.name }
  })
}

/**
 * Copies the model with a different `request`. Fields are copied by name because a class may define them as getters.
 */
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
