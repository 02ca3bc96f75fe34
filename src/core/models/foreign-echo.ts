import type { AssistantMessage, Message } from '../../../machines/agent/messages.js'
import type { ModelProvider } from './provider.js'
import { replaceRequest } from './replace-request.js'

/** One of several models of an agent: its answers are marked with its name. */
export interface MarkedModel {
  name: string
  /** Messages as it is sent them. */
  strippedMessages: WeakMap<AssistantMessage, AssistantMessage>
}

/** Without what another has given to be sent back to itself alone. The same object each time: providers know messages by that. */
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
 * A model among others of an agent: it marks its answers, and is not sent what another wants back with its own. One with
 * fallbacks does that by itself. The same for the same model.
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
