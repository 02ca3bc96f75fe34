import type { JsonObject } from '../../../../machines/agent/json.js'
import type { Delta } from './delta.js'
import { asList, asObject, asText } from '../as-json.js'

/** `content` of a delta: a string, or a list of parts among which are thoughts (Mistral). */
export function readDeltaContent(content: unknown): Delta {
  if (typeof content === 'string') return { text: content, reasoning: '' }
  const delta = { text: '', reasoning: '' }
  for (const item of asList(content)) {
    const part = asObject(item)
    if (part?.type === 'thinking') delta.reasoning += readThoughts(part.thinking)
    else if (part?.type === 'reasoning') delta.reasoning += readThoughts(part.text)
    else delta.text += typeof item === 'string' ? item : asText(part?.text)
  }
  return delta
}

/** Reasoning beside the content. The same thoughts may come in several fields at once: the first that has any counts. */
export function readDeltaReasoning(delta: JsonObject): string {
  return (
    asText(delta.reasoning_content) ||
    asText(delta.reasoning) ||
    (Array.isArray(delta.reasoning_details) ? delta.reasoning_details.map(readDetailText).join('') : '')
  )
}

function readDetailText(detail: unknown): string {
  const fields = asObject(detail)
  return asText(fields?.text) || asText(fields?.summary)
}

function readThoughts(value: unknown): string {
  return typeof value === 'string' ? value : readDeltaContent(value).text
}
