import { classify, type ResponseKind } from '../../guards/completion.js'
import type { ModelOutput } from './response.js'

/** What a response is to the loop. */
export function kindOf({ text, refusal, toolCalls, finishReason }: ModelOutput['response']): ResponseKind {
  return classify({ text, refusal, calls: toolCalls.length, finishReason })
}
