/** What a response is to the loop. */
export type ResponseKind =
  /** Text, and the turn ends. */
  | 'answer'
  /** Calls to carry out, whatever text comes with them. */
  | 'calls'
  /** Cut off at the output limit. */
  | 'truncated'
  /** Cut off while it asked for calls: none of them may run, the last may be incomplete. */
  | 'truncatedCalls'
  /** Withheld by the provider's content filter, in whole or in part; calls in it never run. */
  | 'filtered'
  /** The model declines; final at once. */
  | 'refusal'
  /** Neither text nor calls. */
  | 'empty'

export interface ResponseFacts {
  text: string
  refusal: string | null
  /** How many calls it asks for. */
  calls: number
  /** As the provider wrote it; null when it never came. */
  finishReason: string | null
}

/** The finish reasons that mean a cut, by provider: OpenAI, Anthropic, Gemini, Mistral, OpenAI Responses. */
const lengthReasons = new Set(['length', 'max_tokens', 'model_length', 'max_output_tokens'])

/** OpenAI, Gemini, Bedrock, Zhipu. */
const filterReasons = new Set([
  'content_filter',
  'content_filtered',
  'safety',
  'recitation',
  'blocklist',
  'prohibited_content',
  'spii',
  'guardrail_intervened',
  'sensitive',
])

/**
 * Classifies a response. Calls decide, not the finish reason: providers disagree about `stop` and `tool_calls`. Only a
 * filter and a cut are believed, because such calls must not run. Any other reason, known or not, ends the turn, and
 * so does `tool_calls` without a call.
 */
export function classifyAnswer({ text, refusal, calls, finishReason }: ResponseFacts): ResponseKind {
  // Gemini writes its reasons in capitals.
  const reason = finishReason?.toLowerCase() ?? ''
  if (filterReasons.has(reason)) return 'filtered'
  if (refusal?.trim() || reason === 'refusal') return 'refusal'
  if (lengthReasons.has(reason)) return calls > 0 ? 'truncatedCalls' : 'truncated'
  if (calls > 0) return 'calls'
  return text.trim() ? 'answer' : 'empty'
}
