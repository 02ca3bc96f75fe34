import { callRules } from './call-rules.js'
import { endingRules } from './ending-rules.js'
import { guardrailRules } from './guardrail-rules.js'
import { limitRules, sleepRules } from './limit-rules.js'
import { type AgentInvariant, createRules } from './invariant-rule.js'
import { transcriptRules } from './transcript-rules.js'

const totalRules: readonly AgentInvariant[] = [
  {
    name: 'no event crashes the machine',
    holds: ({ status, error }) => (status === 'error' ? `its status is error: ${String(error)}` : undefined),
  },
  ...createRules({
    'the context is plain JSON': ({ after }) =>
      !isPlainJson(after) && 'it contains a value that JSON cannot represent',
    "the context names the chart's state": ({ after, state }) => {
      const isNamed = state.split('.')[0] === after.state
      return !isNamed && `the chart is in ${state}, but the context names ${after.state}`
    },
  }),
]

/** Contexts share most of their parts, so parts that were checked are remembered. */
const known = new WeakSet<object>()

/** Whether a value survives JSON unchanged. Functions, dates, NaN, undefined items and class instances do not. */
function isPlainJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object') return false
  if (known.has(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && prototype !== null && prototype !== Object.prototype) return false
  const parts: unknown[] = Array.isArray(value)
    ? value
    : Object.values(value).filter((part) => part !== undefined)
  if (!parts.every(isPlainJson)) return false
  known.add(value)
  return true
}

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
