import type { ModelActorError, ModelOutput } from '../../../machines/agent/model-response.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { Turn } from '../../../src/rehearsal/index.js'

/** The provider response that produces this answer. */
export function turnOfAnswer({ response }: ModelOutput): Turn {
  const { text, refusal, toolCalls, finishReason, usage } = response
  return {
    ...(text !== '' && { text }),
    ...(refusal !== null && { refusal }),
    toolCalls: toolCalls.map(({ id, function: { name, arguments: input } }) => ({
      id,
      name,
      arguments: input,
    })),
    ...(finishReason !== null && { finishReason }),
    usage: { input: usage.inputTokens, output: usage.outputTokens },
  }
}

/** The provider response that produces this failure. */
export function turnOfFailure({ kind, code, partialText, usage }: ModelActorError): Turn {
  if (kind === 'incomplete') return { raw: { body: openEnded(partialText, usage) } }
  const error = { message: 'The request cannot be answered.', code }
  if (code === 'content_filter' && usage) return { raw: { body: toStream([toCost(usage), { error }]) } }
  if (code === 'content_filter') return { status: 400, error }
  if (partialText !== '') return { text: partialText, errorInStream: { after: 1, error } }
  return { status: statuses[kind], ...(kind === 'context_overflow' && { error }) }
}

const statuses = { transient: 503, rate_limit: 429, context_overflow: 400, fatal: 401 }

/** A stream that closes after its usage, without a finish reason and `[DONE]`. */
function openEnded(content: string, usage: Usage | null): string {
  const text = { choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] }
  return toStream([text, ...(usage ? [toCost(usage)] : [])])
}

function toCost({ inputTokens, outputTokens, totalTokens }: Usage): object {
  const usage = { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: totalTokens }
  return { choices: [], usage }
}

function toStream(chunks: readonly object[]): string {
  return chunks
    .map((chunk) => {
      const data = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', ...chunk }
      return `data: ${JSON.stringify(data)}\n\n`
    })
    .join('')
}
