export type ResponseKind =
  | 'answer'
  | 'calls'
  | 'truncated'
  /** Truncated while writing calls. None of them may run, because the last may be incomplete. */
  | 'truncatedCalls'
  /** Withheld by the provider's content filter, at least in part. Its calls must not run. */
  | 'filtered'
  | 'refusal'
  | 'empty'

export interface ResponseFacts {
  text: string
  refusal: string | null
  calls: number
  finishReason: string | null
}

const lengthReasons = new Set(['length', 'max_tokens', 'model_length', 'max_output_tokens'])

/** Finish reasons of filtered responses from OpenAI, Gemini, Bedrock and Zhipu. */
const filterReasons = new Set(
  (
    'content_filter content_filtered safety recitation blocklist prohibited_content spii guardrail_intervened ' +
    'sensitive'
  ).split(' '),
)

/** Finish reasons are inconsistent, so only filter and truncation reasons, whose calls must not run, are trusted. */
export function classifyAnswer({ text, refusal, calls, finishReason }: ResponseFacts): ResponseKind {
  // Gemini sends reasons in upper case.
  const reason = finishReason?.toLowerCase() ?? ''
  if (filterReasons.has(reason)) return 'filtered'
  if (refusal?.trim() || reason === 'refusal') return 'refusal'
  if (lengthReasons.has(reason)) return calls > 0 ? 'truncatedCalls' : 'truncated'
  if (calls > 0) return 'calls'
  return text.trim() ? 'answer' : 'empty'
}
