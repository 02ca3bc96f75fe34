import type { OpenAI } from 'openai'
import { isMistral } from '../chat-wire.js'
import type { ApiWire } from '../api-wire.js'
import type { OpenAIResponsesOptions } from './responses-options.js'
import { createResponsesBodyBuilder } from './responses-body.js'
import { createResponsesFormat } from './responses-fold.js'

/** The Responses API, as this provider speaks it. */
export function createResponsesWire(options: OpenAIResponsesOptions, provider: string): ApiWire {
  const { model, hostedTools = [], reasoningSummary, encryptedReasoning } = options
  const from = `responses/${provider}`
  return {
    path: '/responses',
    format: createResponsesFormat(from),
    bodies: createResponsesBodyBuilder({
      model,
      from,
      hostedTools,
      reasoningSummary,
      encryptedReasoning: encryptedReasoning ?? !isNonReasoningModel(model),
      isMistral: isMistral(provider, model),
    }),
    send: (client, body, sending) =>
      client.responses.create(body as unknown as OpenAI.Responses.ResponseCreateParams, sending).asResponse(),
  }
}

/** OpenAI's models that do not reason refuse to be asked for encrypted reasoning. */
function isNonReasoningModel(model: string): boolean {
  return /^(ft:)?(openai[./])?(gpt-3|gpt-4|chatgpt-4|gpt-5(\.\d)?-chat)/.test(model)
}
