import { getOrCreate } from '../base/values.js'
import type { Message, AssistantMessage } from '../../../machines/agent/messages.js'
import type { ModelProvider } from './provider.js'

export interface MarkedModel {
  name: string
  /** Messages without the data that came from other models. */
  strippedMessages: WeakMap<AssistantMessage, AssistantMessage>
}

/**
 * Removes data that only the model that produced it can use. Returns the same object for the same message, because
 * providers cache by identity.
 */
export function stripForeignEcho({ name, strippedMessages }: MarkedModel, message: Message): Message {
  if (message.role !== 'assistant' || message.by === undefined || message.by === name) return message
  return getOrCreate(strippedMessages, message, () => createStripped(message))
}

function createStripped(message: AssistantMessage): AssistantMessage {
  const { reasoning: _thoughts, reasoning_details: _details, provider_items: _items, ...rest } = message
  const { tool_calls: calls } = message
  return {
    ...rest,
    ...(calls && { tool_calls: calls.map(({ extra_content: _extra, hosted: _hosted, ...call }) => call) }),
  }
}

/**
 * Returns the model wrapped so that it marks its responses and does not receive data from other models. Models from
 * `withFallbacks` do this themselves.
 */
export function getMarkedModel(model: ModelProvider): ModelProvider {
  if (model.fallbacks) return model
  return getOrCreate(markedModels, model, () => createMarkedModel(model))
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
