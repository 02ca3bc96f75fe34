import type { Json, JsonObject } from '../../machines/agent/json.js'
import { asText } from '../core/base/values.js'
import type { HostedCall } from '../core/models/provider.js'
import type { EchoPart } from './provider-echo.js'
import type { ProviderData } from './spec.js'

/** Tells the calls that the provider carries out itself: each once when it begins, and once when its result has come. */
export function createHostedCallTracker() {
  /** By id, the names of those that have begun. */
  const begun = new Map<string, string>()
  const ended = new Set<string>()

  function begin(id: string, name: string): HostedCall[] {
    if (name === '' || begun.has(id)) return []
    begun.set(id, name)
    return [{ id, name, item: null }]
  }

  return {
    begin,
    /** `part`: a result as the package has it; `input`: what was called with, where that is known. */
    end(part: JsonObject, input: Json | undefined): HostedCall[] {
      const id = asText(part['toolCallId'])
      const begins = begin(id, asText(part['toolName']))
      const name = begun.get(id)
      if (name === undefined || ended.has(id)) return []
      ended.add(id)
      const { result = null, isError } = part
      const told = { ...(input !== undefined && { input }), result, ...(isError === true && { isError }) }
      return [...begins, { id, name, item: { type: 'tool-result', toolName: name, ...told } }]
    },
  }
}

/**
 * What of an answer its provider takes back: a hosted call that was never answered (the answer was cut off) is refused,
 * unless it waits for a call of ours. Its result is then in a later answer.
 */
export function keepAnswered(parts: readonly EchoPart[]): readonly EchoPart[] {
  const waits = parts.some(({ type }) => type === 'call')
  const results = new Set(parts.flatMap((part) => (part.type === 'tool-result' ? [part['toolCallId']] : [])))
  return waits ? parts : parts.filter((part) => part.type !== 'tool-call' || results.has(part['toolCallId']))
}

/**
 * Whether the provider's package can say what its provider did. Google's would have code that Gemini has run go back as a
 * call without an answer, which Gemini refuses: only what has an id and a kind of Gemini's own does go back as it was.
 */
export function canSendBack(origin: string, options: ProviderData | undefined): boolean {
  if (!/^(google|vertex)\b(?!.*anthropic)/.test(origin)) return true
  return Object.values(options ?? {}).some((own) => asText(own['serverToolType']) !== '')
}
