import { callRules } from './call-rules.js'
import { endingRules } from './ending-rules.js'
import { guardrailRules } from './guardrail-rules.js'
import { limitRules } from './limit-rules.js'
import { sleepRules } from './sleep-rules.js'
import type { AgentInvariant } from './invariant-rule.js'
import { totalRules } from './totality-rules.js'
import { transcriptRules } from './transcript-rules.js'

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
  ...sleepRules,
]
