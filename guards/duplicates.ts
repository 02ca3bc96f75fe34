import { toEvidence, nameCalls } from './lib/words.js'
import * as is from './lib/stored.js'
import { groupBy } from './lib/json.js'
import { ok, type Rule } from './types.js'

const shape = { due: is.nullOr(is.shape({ count: is.count, named: is.namedCalls })) }

export type DuplicatesState = is.Stored<typeof shape>

/** Part of `progress.stale`. Only the first `blockAt` identical calls in a response run. */
export const duplicates: Rule<DuplicatesState, { blockAt: number }, 'no_progress'> = {
  reasons: ['no_progress'],
  initial: { due: null },

  observe(state, fact, { blockAt }) {
    if (fact.type !== 'calls' || fact.calls.length <= blockAt) return state.due ? { due: null } : state
    const groups = groupBy(fact.calls, ({ key }) => key)
    const [most = []] = [...groups.values()].sort((a, b) => b.length - a.length)
    if (most.length <= blockAt) return state.due ? { due: null } : state
    return { due: { count: most.length, named: nameCalls(most.slice(0, 1)) } }
  },

  verdict({ due }, { blockAt }) {
    if (!due) return ok
    return {
      action: 'block',
      guard: 'no_progress',
      rule: 'stale',
      evidence: toEvidence(`${due.named.calls}, ${due.count} times in one response`),
      message:
        `Not executed. One response made the same call to ${due.named.tools} ${due.count} times, and only ` +
        `the first ${blockAt} were executed. Use their results. If you need it again, call it in a later response.`,
      spare: blockAt,
    }
  },

  restore: is.createRestore(shape),
}
