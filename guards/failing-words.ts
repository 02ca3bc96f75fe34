import { evidence } from './lib/evidence.js'
import type { FailingConfig, FailureRule } from './failures.js'
import { type Named, times } from './lib/words.js'

export interface FailingDue {
  action: 'nudge' | 'block' | 'halt'
  rule: FailureRule
  count: number
  named: Named
  /** The calls to refuse. */
  fingerprints: string[]
}

const advice: Record<FailureRule, (tools: string, count: number) => string> = {
  identical: (tools, count) =>
    `${tools} has failed ${times(count)} with the same arguments. ` +
    'Read the error, then change the arguments or try another way.',
  any: (_, count) =>
    `Your last ${count} rounds of calls have failed. Find out what goes wrong before you call another tool, ` +
    'or tell the user what you cannot do.',
  transientIdentical: (tools, count) =>
    `${tools} has failed ${times(count)} with a temporary error. ` +
    'Do without it, or tell the user that it is not available.',
  transientAny: (_, count) =>
    `Your last ${count} rounds of calls have failed with temporary errors. ` +
    'Do without these tools, or tell the user that they are not available.',
  policyDenied: (tools) =>
    `${tools} was denied by policy, and the same call will be denied again. ` +
    'Do not repeat it: find another way, or tell the user what you may not do.',
}

const cause: Record<FailureRule, (tools: string, count: number, refused: string) => string> = {
  identical: (tools, count, refused) =>
    `${tools} failed ${times(count)} with the same arguments${refused}. ` +
    'Look at its error: the tool or its arguments need mending.',
  any: (tools, count) =>
    `The last ${count} rounds of calls failed, the last of them ${tools}. Look at the errors of the tools.`,
  transientIdentical: (tools, count, refused) =>
    `${tools} failed ${times(count)} with a temporary error${refused}. ` +
    'Check that what it connects to is up, then run again.',
  transientAny: (tools, count) =>
    `The last ${count} rounds of calls failed with temporary errors, the last of them ${tools}. ` +
    'Check that what they connect to is up, then run again.',
  policyDenied: (tools, count, refused) =>
    `${tools} was denied by policy ${times(count)} with the same arguments${refused}. ` +
    'Permit the call in the tool, or tell the agent in its instructions not to make it.',
}

/** What the model reads one failure before the end. */
export function nudgeMessage({ rule, count, named }: FailingDue): string {
  return advice[rule](named.tools, count)
}

/** What the model reads as the result of a call that was refused. */
export function refusalMessage({ rule, count, named }: FailingDue): string {
  const what = rule === 'policyDenied' ? 'was denied by policy' : 'has failed'
  return (
    `Not executed. ${named.tools} ${what} ${times(count)} with the same arguments. ` +
    'Change the arguments or try another way. If you ask for it again, the run stops.'
  )
}

/** What the user reads. */
export function haltMessage({ rule, count, named, fingerprints }: FailingDue, config: FailingConfig): string {
  const refused = fingerprints.length > 0 ? ', was refused and asked for again' : ''
  return (
    `${cause[rule](named.tools, count, refused)} ` +
    `To allow more, raise guardrails.failing.${rule} (now ${config[rule]}).`
  )
}

export function failingEvidence({ rule, count, named }: FailingDue): string {
  const isStreak = rule === 'any' || rule === 'transientAny'
  return evidence(
    isStreak
      ? `${count} failed rounds in a row, last ${named.calls}`
      : `${named.calls} failed ${times(count)}`,
  )
}
