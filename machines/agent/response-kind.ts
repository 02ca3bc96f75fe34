import { classify, type ResponseKind } from '../../guards/completion.js'
import type { ModelResponse } from './response.js'

/** What a response is to the loop. */
export function kindOf({
  text,
  refusal,
  toolCalls,
  finishReason,
}: Pick<ModelResponse, 'text' | 'refusal' | 'toolCalls' | 'finishReason'>): ResponseKind {
  return classify({ text, refusal, calls: toolCalls.length, finishReason })
}
