import { findNonJson } from '../../canonical-json.js'
import { callRules } from './call-rules.js'
import { endingRules } from './ending-rules.js'
import { guardrailRules } from './guardrail-rules.js'
import { limitRules, sleepRules } from './limit-rules.js'
import { type AgentInvariant, createRules } from './invariant-rule.js'
import { transcriptRules } from './transcript-rules.js'

/** Contexts share most of their parts. */
const known = new WeakSet()

const totalRules: readonly AgentInvariant[] = [
  {
    name: 'no event crashes the machine',
    holds: ({ status, error }) => (status === 'error' ? `its status is error: ${String(error)}` : undefined),
  },
  ...createRules({
    'the context is plain JSON': ({ after }) => {
      const found = findNonJson(after, known)
      return found && `it contains ${found}, which JSON cannot represent`
    },
    "the context names the chart's state": ({ after, state }) => {
      const isNamed = state.split('.')[0] === after.state
      return !isNamed && `the chart is in ${state}, but the context names ${after.state}`
    },
  }),
]

/**
 * The rules of the agent machine, which hold in every reachable state:
 *
 * ```ts
 * const { violations } = checkInvariants(agentMachine, agentInvariants, agentSpace())
 * ```
 */
export const agentInvariants: readonly AgentInvariant[] = [
  ...totalRules,
  ...transcriptRules,
  ...endingRules,
  ...limitRules,
  ...callRules,
  ...guardrailRules,
  ...sleepRules,
]
