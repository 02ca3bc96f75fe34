import type { Json, JsonObject } from '../../../machines/agent/json.js'

/** Parsed JSON of a provider: every field may be missing or have any type, so every read goes through one of these. */
export function asObject(value: unknown): JsonObject | null {
  return isObject(value) ? value : null
}

/** The list, or an empty one for everything else. */
export function asList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value : []
}

/** The string, or '' for everything else. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
