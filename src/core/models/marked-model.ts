import { getOrCreate } from '../base/values.js'
import type { Message, AssistantMessage } from '../../../machines/agent/messages.js'
import type { ModelProvider } from './provider.js'

export interface MarkedModel {
  name: string
  strippedMessages: WeakMap<AssistantMessage, AssistantMessage>
}

/** Removes data that only its own model can use. Cached, because providers cache messages by identity. */
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

/** Marks the responses, and withholds data from other models. `withFallbacks` does this itself. */
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

/** Copies the fields by name, because a class may define them as getters. */
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
