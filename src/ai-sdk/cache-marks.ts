import type { PromptMessage, ProviderData } from './spec.js'

/** What a provider is told at the end of what it may keep, where it has to be told. */
export type CacheMark = ProviderData

/**
 * The mark of a provider that keeps nothing without one. Anthropic's says how long: five minutes, which every use
 * prolongs, or an hour, which costs more to write.
 */
export function findCacheMark(provider: string, cache: boolean | '5m' | '1h'): CacheMark | null {
  if (cache === false || !provider.includes('anthropic')) return null
  return { anthropic: { cacheControl: { type: 'ephemeral', ...(cache !== true && { ttl: cache }) } } }
}

type Turn = Exclude<PromptMessage, { role: 'system' }>

/**
 * The transcript with two marks: at its end, for the next request to find, and where the last request had its end, to be
 * found. Anthropic looks back over so many blocks and no more, and a batch can have more.
 */
export function markTurns(turns: readonly Turn[], mark: CacheMark): Turn[] {
  const answer = turns.findLastIndex(({ role }) => role === 'assistant')
  const ends = [turns.length - 1, turns.findLastIndex((_, i) => i < answer)]
  return turns.map((turn, i) => (ends.includes(i) ? markTurnEnd(turn, mark) : turn))
}

/** Thoughts bear no mark, so that only what users and tools say is marked. */
function markTurnEnd(turn: Turn, mark: CacheMark): Turn {
  const last = turn.content.at(-1)
  if (turn.role === 'assistant' || last === undefined) return turn
  const options = 'providerOptions' in last ? last.providerOptions : undefined
  return {
    ...turn,
    content: [...turn.content.slice(0, -1), { ...last, providerOptions: { ...options, ...mark } }],
  }
}
