import { callRules } from './calls.js'
import { endingRules } from './ending.js'
import { guardrailRules } from './guardrails.js'
import { limitRules } from './limits.js'
import type { AgentInvariant } from './rule.js'
import { totalRules } from './total.js'
import { transcriptRules } from './transcript.js'

/**
 * The rules of the agent machine, to be held over every reachable state:
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
]
