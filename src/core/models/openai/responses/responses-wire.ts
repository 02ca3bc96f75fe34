import type { OpenAI } from 'openai'
import { isMistral } from '../chat-wire.js'
import type { Wire } from '../wire.js'
import type { OpenAIResponsesOptions } from './options.js'
import { createResponsesBodies } from './request-body.js'
import { responsesFormat } from './fold.js'

/** The Responses API, as this provider speaks it. */
export function responsesWire(options: OpenAIResponsesOptions, provider: string): Wire {
  const { model, hostedTools = [], reasoningSummary, encryptedReasoning } = options
  const from = `responses/${provider}`
  return {
    path: '/responses',
    format: responsesFormat(from),
    bodies: createResponsesBodies({
      model,
      from,
      hostedTools,
      reasoningSummary,
      encryptedReasoning: encryptedReasoning ?? !isPlainModel(model),
      isMistral: isMistral(provider, model),
    }),
    send: (client, body, sending) =>
      client.responses.create(body as unknown as OpenAI.Responses.ResponseCreateParams, sending).asResponse(),
  }
}

/** OpenAI's models that do not reason refuse to be asked for encrypted reasoning. */
function isPlainModel(model: string): boolean {
  return /^(ft:)?(openai[./])?(gpt-3|gpt-4|chatgpt-4|gpt-5(\.\d)?-chat)/.test(model)
}
