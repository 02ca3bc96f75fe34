import { getOrCreate } from '../base/values.js'
import type { Message, AssistantMessage } from '../../../machines/agent/messages.js'
import { withoutReasoning } from './leave-out.js'
import type { ModelProvider } from './provider.js'

export interface MarkedModel {
  name: string
  strippedMessages: WeakMap<AssistantMessage, AssistantMessage>
}

/** Removes data that only its own model can use. Cached, because providers cache messages by identity. */
export function stripForeignEcho({ name, strippedMessages }: MarkedModel, message: Message): Message {
  if (message.role !== 'assistant' || message.by === undefined || message.by === name) return message
  return getOrCreate(strippedMessages, message, () => {
    const { tool_calls: calls, ...rest } = withoutReasoning(message)
    return { ...rest, ...(calls && { tool_calls: calls.map(({ hosted: _hosted, ...call }) => call) }) }
  })
}

/** Marks the responses, and withholds data from other models. `withFallbacks` does this itself. */
export function getMarkedModel(model: ModelProvider): ModelProvider {
  if (model.fallbacks) return model
  return getOrCreate(markedModels, model, () => {
    const mark: MarkedModel = { name: `${model.provider}/${model.model}`, strippedMessages: new WeakMap() }
    return replaceRequest(model, async (request, options) => {
      const messages = request.messages.map((message) => stripForeignEcho(mark, message))
      return { ...(await model.request({ ...request, messages }, options)), by: mark.name }
    })
  })
}

const markedModels = new WeakMap<ModelProvider, ModelProvider>()

const optional = [
  'fallbacks',
  'structuredOutput',
  'canForbidCalls',
  'searchesTools',
  'media',
  'echoesReasoning',
  'endpoint',
] as const

/** Copies the fields by name, because a class may define them as getters. */
export function replaceRequest(whole: ModelProvider, request: ModelProvider['request']): ModelProvider {
  const { provider, model } = whole
  const fields = optional.map((key) => [key, whole[key]] as const).filter(([, value]) => value)
  return {
    provider,
    model,
    ...(Object.fromEntries(fields) as Pick<ModelProvider, (typeof optional)[number]>),
    ...(whole.check && { check: () => whole.check?.() }),
    request,
  }
}
