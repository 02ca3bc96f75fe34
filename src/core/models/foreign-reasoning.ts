import { memoize } from '../base/values.js'
import type { Message, AssistantMessage } from '../../../machines/agent/messages.js'
import { withoutReasoning } from './leave-out.js'
import type { ModelProvider } from './provider.js'

/** Removes data that only the model of the message can use. */
export function stripForeignEcho(name: string, message: Message): Message {
  if (message.role !== 'assistant' || message.by === undefined || message.by === name) return message
  return stripEcho(message)
}

/** The same object for the same message, because providers cache messages by identity. */
const stripEcho = memoize((message: AssistantMessage): AssistantMessage => {
  const { tool_calls: calls, ...rest } = withoutReasoning(message)
  return { ...rest, ...(calls && { tool_calls: calls.map(({ hosted: _hosted, ...call }) => call) }) }
})

/** Marks the responses, and withholds data from other models. `withFallbacks` does this itself. */
export function getMarkedModel(model: ModelProvider): ModelProvider {
  return model.fallbacks ? model : markModel(model)
}

const markModel = memoize((model: ModelProvider): ModelProvider => {
  const name = `${model.provider}/${model.model}`
  return replaceRequest(model, async (request, options) => {
    const messages = request.messages.map((message) => stripForeignEcho(name, message))
    return { ...(await model.request({ ...request, messages }, options)), by: name }
  })
})

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
