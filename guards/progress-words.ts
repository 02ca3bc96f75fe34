import { toEvidence } from './lib/evidence.js'
import type { ProgressRule } from './tally.js'
import { lastWordsAsked, type NamedCalls, formatTimes } from './lib/words.js'

export interface ProgressDue {
  action: 'nudge' | 'block' | 'halt'
  rule: ProgressRule
  count: number
  /** The count that halts. */
  haltAt: number | null
  named: NamedCalls
  /** Whether a person, a shield or another guard refused the repeated calls. */
  refused: boolean
  /** Which of two wordings. */
  wording: number
}

interface Words {
  /** After `You have`, or `The model has`. Without a full stop. */
  done: (tools: string, count: number, refused: boolean) => string
  /** Two wordings, so that no nudge has the words of the one before. */
  advice: readonly [string, string]
  /** A remedy for people, other than a higher limit. */
  remedy: string
}

const markPolling = 'mark a tool that waits for something with polling: true'

const words: Record<ProgressRule, Words> = {
  stale: {
    done: (tools, count, refused) =>
      refused
        ? `asked again for ${tools} with the same arguments after it was refused`
        : `called ${tools} with the same arguments ${formatTimes(count + 1)} in a row, and nothing new came back`,
    advice: [
      'Use what you have, change the arguments, or try another way.',
      'Say what you expected to change, and look for it elsewhere; or answer with what you know.',
    ],
    remedy: markPolling,
  },
  mixed: {
    done: (tools, count) =>
      `repeated earlier calls in the last ${count} rounds, the latest ${tools}, with the same results`,
    advice: [
      'Write down what you have learned, then do something that you have not done yet.',
      'Stop going round in circles: decide with what you know, or ask the user.',
    ],
    remedy: markPolling,
  },
  recurring: {
    done: (tools, count) =>
      `called ${tools} with the same arguments ${formatTimes(count)}, and at most the numbers in its result changed`,
    advice: [
      'Asking will not change it: find out what it depends on, or go on without it.',
      'If you wait for something, wait longer between two calls; if not, look somewhere else.',
    ],
    remedy: markPolling,
  },
  failing: {
    done: (tools, count) => `made ${count} rounds of calls that all failed, the latest ${tools}`,
    advice: [
      'Find out what goes wrong before you call another tool, or tell the user what you cannot do.',
      'Start from the last thing that worked, and change one thing at a time.',
    ],
    remedy: 'look at the errors of the tools',
  },
  sameError: {
    done: (tools, count) => `tried ${count} different calls of ${tools}, and the error was the same`,
    advice: [
      'It is not about the arguments that you change: read it literally, and mend what it names.',
      'Other arguments will fail the same way: find the cause elsewhere, or do without this tool.',
    ],
    remedy: 'look at that error: what the tool needs may be missing',
  },
  unknownTools: {
    done: (tools, count) => `asked in ${count} rounds for tools that do not exist (${tools})`,
    advice: [
      'Use only the tools that you were given, by their exact names.',
      'If none of your tools can do it, tell the user so.',
    ],
    remedy: 'name the tools in the instructions, or offer what it looks for',
  },
  refused: {
    done: (tools, count) => `asked in ${count} rounds for what was refused, the latest ${tools}`,
    advice: [
      'Read why, and stay within it; or tell the user what you may not do.',
      'Do not look for a way around it: ask the user what is wanted instead.',
    ],
    remedy: 'tell the agent in its instructions what it may not do',
  },
  policyDenied: {
    done: (tools, count) => `asked ${formatTimes(count)} for ${tools}, which is denied by policy`,
    advice: [
      'The same call will be denied again: find another way, or tell the user what you may not do.',
      'It is not allowed: go on without it, or tell the user.',
    ],
    remedy: 'permit the call in the tool, or tell the agent in its instructions not to make it',
  },
  transient: {
    done: (tools, count) => `called ${tools} in ${count} rounds, and it failed with a temporary error`,
    advice: [
      'Do without it for now, or tell the user that it is not available.',
      'It may be down for longer: do what does not need it.',
    ],
    remedy: 'check that what it connects to is up',
  },
}

/** The key of `guardrails.progress` that has the numbers of a rule. */
export function toSetting({ rule }: Pick<ProgressDue, 'rule'>): Exclude<ProgressRule, 'recurring'> {
  return rule === 'recurring' ? 'stale' : rule
}

function formatDone({ rule, named, count, refused }: ProgressDue, who = 'You have'): string {
  return `${who} ${words[rule].done(named.tools, count, refused)}.`
}

/** The model reads it with its next request. */
export function formatProgressNudge(due: ProgressDue): string {
  const { advice, remedy } = words[due.rule]
  const forDeveloper = remedy === markPolling ? ` (For the developer: ${markPolling}.)` : ''
  return `${formatDone(due)} ${advice[due.wording === 1 ? 1 : 0]}${forDeveloper}`
}

/** The model reads it as the result of a call that was refused. */
export function formatProgressRefusal(due: ProgressDue): string {
  const left = due.haltAt === null ? null : Math.max(1, due.haltAt - due.count)
  const end = left === null ? '' : ` After ${left === 1 ? 'one' : left} more like this the run stops.`
  return `Not executed. ${formatDone(due)} ${words[due.rule].advice[due.count % 2 === 0 ? 0 : 1]}${end}`
}

/** People read it when the run stops. */
export function formatProgressHalt(due: ProgressDue): string {
  const { rule, haltAt } = due
  return `${formatDone(due, 'The model has')} To allow more, raise guardrails.progress.${toSetting(due)}.haltAt (now ${haltAt}); ${words[rule].remedy}.`
}

/** The model reads it before the run pauses. */
export function formatLastWordsPrompt(due: ProgressDue): string {
  return `${formatDone(due)} ${lastWordsAsked}`
}

export function formatProgressEvidence(due: ProgressDue): string {
  return toEvidence(`${due.named.calls} (progress.${toSetting(due)}: ${due.count})`)
}
