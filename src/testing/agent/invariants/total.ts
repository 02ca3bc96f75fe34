import { isPlainJson } from './plain-json.js'
import { type AgentInvariant, rule } from './rule.js'

/** The machine never breaks, and its context is data. */
export const totalRules: readonly AgentInvariant[] = [
  {
    name: 'no event breaks the machine',
    holds: ({ status, error }) =>
      status === 'error' ? `it stands in status error: ${String(error)}` : undefined,
  },
  rule(
    'the context is plain JSON',
    ({ after }) => !isPlainJson(after) && 'it holds something that JSON cannot',
  ),
  rule('the context knows the state that the chart is in', ({ after, state }) => {
    return state.split('.')[0] !== after.state && `the chart is in ${state}, the context says ${after.state}`
  }),
]
