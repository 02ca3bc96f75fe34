import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import { asList, asObject, asText } from '../as-json.js'

/**
 * Puts streamed `reasoning_details` together again: pieces of one entry (same type, index and id, one after another)
 * are joined, with the signature that comes last. The provider wants the whole entries back unchanged.
 */
export class ReasoningDetails {
  readonly #entries: JsonObject[] = []

  get length(): number {
    return this.#entries.length
  }

  push(details: unknown): void {
    for (const detail of asList(details)) {
      const entry = asObject(detail)
      if (entry !== null) this.#add(entry)
    }
  }

  result(): Json[] {
    return this.#entries
  }

  #add(entry: JsonObject): void {
    const last = this.#entries.at(-1)
    if (last === undefined || !isContinuation(last, entry)) {
      this.#entries.push({ ...entry })
      return
    }
    for (const [key, value] of Object.entries(entry)) {
      if (key === 'text' || key === 'summary') last[key] = asText(last[key]) + asText(value)
      else if (value !== null) last[key] = value
    }
  }
}

function isContinuation(last: JsonObject, next: JsonObject): boolean {
  const joined = next.type === 'reasoning.text' || next.type === 'reasoning.summary'
  return (
    joined &&
    last.type === next.type &&
    last.index === next.index &&
    (next.id == null || last.id == null || last.id === next.id)
  )
}
