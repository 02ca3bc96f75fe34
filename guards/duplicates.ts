import type { DuplicatesConfig } from './progress-config.js'
import { toEvidence } from './lib/evidence.js'
import { isCount, isNamedCalls, isRecord } from './lib/stored.js'
import { type CallFact, ok, type Rule } from './types.js'
import { type NamedCalls, nameCalls } from './lib/words.js'

export interface DuplicatesState {
  /** What the last fact led to: the call that comes most often in one response, and how often. */
  due: { count: number; named: NamedCalls } | null
}

/** Refuses identical calls in one response from the `blockAt`-th on: one answer is enough, and each may have an effect. */
export const duplicates: Rule<DuplicatesState, DuplicatesConfig, 'no_progress'> = {
  reasons: ['no_progress'],
  initial: { due: null },

  observe(state, fact, { blockAt }) {
    if (fact.type !== 'calls' || fact.calls.length < blockAt) return state.due ? { due: null } : state
    const counts = new Map<string, { call: CallFact; count: number }>()
    for (const call of fact.calls) {
      const count = (counts.get(call.key)?.count ?? 0) + 1
      counts.set(call.key, { call, count })
    }
    let most: { call: CallFact; count: number } | null = null
    for (const one of counts.values()) if (one.count > (most?.count ?? 0)) most = one
    if (most === null || most.count < blockAt) return state.due ? { due: null } : state
    return { due: { count: most.count, named: nameCalls([most.call]) } }
  },

  verdict({ due }, { blockAt }) {
    if (!due) return ok
    return {
      action: 'block',
      guard: 'no_progress',
      rule: 'duplicates',
      evidence: toEvidence(`${due.named.calls}, ${due.count} times in one response`),
      message:
        `Not executed. One response asked for the same call of ${due.named.tools} ${due.count} times; ` +
        `the first ${blockAt - 1} were executed. Use their results. If you need it again, ask for it in a later response.`,
      fingerprints: null,
      spare: blockAt - 1,
    }
  },

  restore(stored) {
    if (!isRecord(stored)) return null
    const { due } = stored
    if (due === null) return { due }
    if (!isRecord(due) || !isCount(due['count']) || !isNamedCalls(due['named'])) return null
    return { due: { count: due['count'], named: due['named'] } }
  },
}
