import type { JsonObject } from '../../machines/agent/json.js'
import { asList, asObject, asText } from '../core/base/values.js'

/**
 * The finish reason in a provider's own chunk; '' where it has none. Packages emit `finish` when the stream closes, so a
 * connection that breaks between the two would lose a complete answer.
 */
export function readRawFinish(chunk: unknown): string {
  const raw = asObject(chunk)
  if (raw === null) return ''
  const choice = asObject(asList(raw.choices)[0])
  const candidate = asObject(asList(raw.candidates)[0])
  return (
    asText(choice?.['finish_reason']) || // Chat Completions
    asText(asObject(raw['delta'])?.['stop_reason']) || // Anthropic
    asText(candidate?.['finishReason']) || // Gemini
    asText(asObject(raw['messageStop'])?.['stopReason']) || // Bedrock
    (raw['done'] === true ? asText(raw['done_reason']) || 'stop' : '') || // Ollama
    readResponseEnd(raw)
  )
}

function readResponseEnd({ type, response }: JsonObject): string {
  if (type === 'response.completed') return 'stop'
  if (type !== 'response.incomplete') return ''
  return asText(asObject(asObject(response)?.['incomplete_details'])?.['reason']) || 'length'
}
