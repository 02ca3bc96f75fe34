import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import { asList, asObject, asText } from '../as-json.js'

export type ReasoningDetails = ReturnType<typeof createReasoningDetails>

/**
 * Puts streamed `reasoning_details` together again: pieces of one entry (same type, index and id, one after another)
 * are joined, with the signature that comes last. The provider wants the whole entries back unchanged.
 */
export function createReasoningDetails() {
  const entries: JsonObject[] = []

  function add(entry: JsonObject): void {
    const last = entries.at(-1)
    if (last === undefined || !continues(last, entry)) {
      entries.push({ ...entry })
      return
    }
    for (const [key, value] of Object.entries(entry)) {
      if (key === 'text' || key === 'summary') last[key] = asText(last[key]) + asText(value)
      else if (value !== null) last[key] = value
    }
  }

  return {
    push(details: unknown): void {
      for (const detail of asList(details)) {
        const entry = asObject(detail)
        if (entry !== null) add(entry)
      }
    },
    get length() {
      return entries.length
    },

    result: (): Json[] => entries,
  }
}

function continues(last: JsonObject, next: JsonObject): boolean {
  const joined = next.type === 'reasoning.text' || next.type === 'reasoning.summary'
  return (
    joined &&
    last.type === next.type &&
    last.index === next.index &&
    (next.id == null || last.id == null || last.id === next.id)
  )
}
