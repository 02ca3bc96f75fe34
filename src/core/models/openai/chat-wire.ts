import type { OpenAI } from 'openai'
import { getReasoningEcho } from './echo-reasoning.js'
import { chatFormat } from './chat-fold.js'
import type { OpenAIChatOptions } from './openai-options.js'
import { createChatBodyBuilder } from './chat-body.js'
import type { ApiWire } from './api-wire.js'

/** The Chat Completions API, as this provider speaks it. */
export function createChatWire(options: OpenAIChatOptions, provider: string): ApiWire {
  return {
    path: '/chat/completions',
    format: chatFormat,
    bodies: createChatBodyBuilder({
      model: options.model,
      maxTokensField: options.maxTokensField ?? getDefaultMaxTokensField(provider),
      echoReasoning: getReasoningEcho(provider, options.echoReasoning),
      // Mistral refuses fields that it does not know, and sends the usage anyway.
      streamOptions: provider !== 'mistral',
      isMistral: isMistral(provider, options.model),
    }),
    send: (client, body, sending) =>
      client.chat.completions
        .create(body as unknown as OpenAI.ChatCompletionCreateParams, sending)
        .asResponse(),
  }
}

/** Mistral's models keep their own rules wherever they are served. */
export function isMistral(provider: string, model: string): boolean {
  return provider === 'mistral' || /(mis|mix|minis|codes|devs|magis|pix|vox)tral/i.test(model)
}

function getDefaultMaxTokensField(provider: string): 'max_tokens' | 'max_completion_tokens' {
  return provider === 'openai' || provider === 'azure' ? 'max_completion_tokens' : 'max_tokens'
}
