import { getReasoningEcho, type OpenAIChatOptions, type ReasoningEcho } from './openai-options.js'
import { chatFormat } from './chat-fold.js'
import type { ApiWire } from './exchange.js'
import type { Message } from '../../../../machines/agent/messages.js'
import type { ModelRequest, Sampling, ToolChoice, ToolSpec } from '../provider.js'
import { insertMediaMessages } from '../result-media.js'
import { toWellFormed } from '../plain-json.js'
import {
  arrangeMessages,
  toTextMessages,
  createTextMessageCache,
  createCallIdMapper,
  toWireMessage,
  type WireMessage,
  type WireStyle,
} from './wire-messages.js'
import { createBodyEncoder, getOrCreate, type RequestBody, mergeExtraBody } from './encode-body.js'

export function createChatWire(options: OpenAIChatOptions, provider: string): ApiWire {
  return {
    path: '/chat/completions',
    format: chatFormat,
    bodies: createChatBodyBuilder({
      model: options.model,
      maxTokensField: options.maxTokensField ?? getDefaultMaxTokensField(provider),
      echoReasoning: getReasoningEcho(provider, options.echoReasoning),
      // Mistral rejects unknown fields and reports usage anyway.
      streamOptions: provider !== 'mistral',
      isMistral: isMistral(provider, options.model),
    }),
    send: (client, body, sending) => client.chat.completions.create(body as never, sending).asResponse(),
  }
}

/** Mistral models keep their rules wherever they are served. */
export function isMistral(provider: string, model: string): boolean {
  return provider === 'mistral' || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(model)
}

function getDefaultMaxTokensField(provider: string): 'max_tokens' | 'max_completion_tokens' {
  return provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'
}

export interface ChatBodyOptions {
  model: string
  maxTokensField: 'max_tokens' | 'max_completion_tokens'
  echoReasoning: ReasoningEcho
  /** Whether the server accepts `stream_options`. */
  streamOptions: boolean
  /** Whether ids and message order must follow Mistral's rules. */
  isMistral: boolean
}

/**
 * Builds Chat Completions bodies. Each message and tool is converted and serialized once, because the transcript
 * is sent with every request.
 */
export function createChatBodyBuilder(options: ChatBodyOptions) {
  const wires = new WeakMap<Message, WireMessage | null>()
  const functions = new WeakMap<ToolSpec, object>()
  const systemOf = createTextMessageCache('system')
  const style: WireStyle = {
    echoReasoning: options.echoReasoning,
    callId: createCallIdMapper(options.model, options.isMistral),
  }

  const wireOf = (message: Message) => getOrCreate(wires, message, () => toWireMessage(message, style))
  const functionOf = (tool: ToolSpec) =>
    getOrCreate(functions, tool, () => toWellFormed({ type: 'function', function: toFunction(tool) }))

  function messagesOf({ instructions, messages, nudges }: ModelRequest): WireMessage[] {
    const wire = systemOf(toWellFormed(instructions))
    for (const message of insertMediaMessages(messages)) {
      const text = wireOf(message)
      if (text !== null) wire.push(text)
    }
    wire.push(...toTextMessages('user', toWellFormed(nudges.join('\n\n'))))
    return arrangeMessages(wire, { bridge: options.isMistral })
  }

  return {
    body(request: ModelRequest): RequestBody {
      const { tools, toolChoice, responseFormat, stream } = request
      const body: Record<string, unknown> = {
        model: options.model,
        messages: messagesOf(request),
        ...(tools.length > 0 && { tools: tools.map(functionOf) }),
        ...(tools.length > 0 && toolChoice !== undefined && { tool_choice: toWireChoice(toolChoice) }),
        ...(responseFormat && {
          response_format: { type: 'json_schema', json_schema: responseFormat },
        }),
        ...toWireSampling(request.sampling, options.maxTokensField),
        stream,
        ...(stream && options.streamOptions && { stream_options: { include_usage: true } }),
      }
      return mergeExtraBody(body, request.extraBody)
    },

    encode: createBodyEncoder(),
  }
}

function toFunction({ name, description, parameters }: ToolSpec): object {
  return { name, description, parameters }
}

function toWireChoice(choice: ToolChoice): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } }
}

const wireFieldNames: Readonly<
  Record<Exclude<keyof Sampling, 'maxTokens'>, string> & { maxTokens?: string }
> = {
  temperature: 'temperature',
  topP: 'top_p',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  seed: 'seed',
  stop: 'stop',
  reasoningEffort: 'reasoning_effort',
}

function toWireSampling(
  sampling: Sampling,
  maxTokensField: ChatBodyOptions['maxTokensField'],
): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(sampling)) {
    if (value === undefined) continue
    const field = key === 'maxTokens' ? maxTokensField : wireFieldNames[key as keyof Sampling]
    if (field !== undefined) fields[field] = value
  }
  return fields
}
