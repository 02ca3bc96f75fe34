import { type ProgressConfig, progressDefaults, progressSettings } from './progress-config.js'
import {
  countStaleness,
  findStaleBatch,
  forgetPairs,
  noStaleness,
  resetAfterWait,
  stalenessShape,
} from './staleness.js'
import * as is from './lib/stored.js'
import { countStreaks, noStreaks, streaksShape } from './streaks.js'
import { type ProgressRule, type Tally, decideProgressAction, progressRules } from './progress-steps.js'
import { type CallFact, type Fact, type Guard, type ResultFact, ok } from './types.js'
import { formatRounds, formatTimes, lastWordsAsked, nameCalls, toEvidence } from './lib/words.js'

const isDue = is.nullOr(
  is.shape({
    action: is.oneOf('nudge', 'block', 'halt'),
    rule: is.oneOf(...progressRules),
    count: is.count,
    haltAt: is.nullOr(is.count),
    named: is.namedCalls,
    /** Whether a person, a shield or another guard refused the repeated calls. */
    refused: is.flag,
    wording: is.count,
  }),
)

const shape = { ...stalenessShape, ...streaksShape, lastNudge: is.nullOr(is.text), due: isDue }

export type ProgressState = is.Stored<typeof shape>
export type ProgressDue = NonNullable<ProgressState['due']>

/** News is a call that is new in this turn, or a new result of a call, ignoring volatile parts. */
export const progress: Guard<ProgressState, ProgressConfig, 'no_progress' | 'policy_denied'> = {
  reasons: ['no_progress', 'policy_denied'],
  settings: progressSettings,
  defaults: progressDefaults,
  isOn: true,
  initial: { ...noStaleness, ...noStreaks, lastNudge: null, due: null },

  observe(state, fact, config) {
    switch (fact.type) {
      case 'calls':
        return observeCalls(state, fact.calls, config)
      case 'results':
        return observeResults(state, fact, config)
      default:
        return state.due ? { ...state, due: null } : state
    }
  },

  verdict({ due }, config) {
    if (!due) return ok
    const { action } = due
    const rule = toSetting(due)
    const guard = rule === 'policyDenied' ? ('policy_denied' as const) : ('no_progress' as const)
    const evidence = toEvidence(`${due.named.calls} (progress.${rule}: ${due.count})`)
    if (action === 'block') return { action, guard, rule, evidence, message: formatProgressRefusal(due) }
    if (action === 'nudge') return { action, guard, rule, evidence, message: formatProgressNudge(due) }
    const message = formatProgressHalt(due)
    const onHalt = rule === 'policyDenied' ? 'error' : config.onHalt
    const asks = config.lastWords && onHalt === 'pause'
    const lastWords = asks && { lastWords: `${formatDone(due)} ${lastWordsAsked}` }
    return { action, guard, rule, evidence, message, onHalt, ...lastWords }
  },

  restore: (stored) =>
    restoreState(is.isRecord(stored) && !isDue(stored['due']) ? { ...stored, due: null } : stored),

  forget(state, head, from) {
    const pairs = forgetPairs(state.pairs, head, from)
    return pairs === state.pairs ? state : { ...state, pairs }
  },
}

function observeCalls(state: ProgressState, all: readonly CallFact[], config: ProgressConfig): ProgressState {
  const calls = all.filter((call) => !call.polling)
  const rule = findStaleBatch(state, calls, config)
  if (rule === null) return state.due ? { ...state, due: null } : state
  const due: ProgressDue = {
    action: 'block',
    rule,
    count: Math.round(state.stale),
    haltAt: config[rule]?.haltAt ?? null,
    named: nameCalls(calls),
    refused: false,
    wording: 0,
  }
  return { ...state, due }
}

function observeResults(
  state: ProgressState,
  { results: all, at }: Extract<Fact, { type: 'results' }>,
  config: ProgressConfig,
): ProgressState {
  const ended = all.filter((result) => !result.refused || result.refusedBy !== null)
  const results = ended.filter((result) => !result.polling).map(readTransient)
  if (results.length === 0) {
    return ended.length > 0 ? { ...state, ...resetAfterWait(state), due: null } : { ...state, due: null }
  }
  const [staleness, stale] = countStaleness(state, results, at, config)
  const { pairs, stale: row, batch, waits, changedAt } = staleness
  const [streaks, broken] = countStreaks(state, results, { at, changedAt }, config)
  const { failing, unknownTools, refused, transient, tools } = streaks
  const due = findDue([...stale, ...broken], state.lastNudge)
  const lastNudge = due?.action === 'nudge' ? formatFinding(due) : state.lastNudge
  // Assigns keys one by one, because spreading two objects would double the cost.
  return {
    pairs,
    stale: row,
    batch,
    waits,
    changedAt,
    failing,
    unknownTools,
    refused,
    transient,
    tools,
    lastNudge,
    due,
  }
}

/** Marks a result as transient if its text reports a temporary failure, even if the tool did not throw. */
function readTransient(result: ResultFact): ResultFact {
  return result.says === 'transient' ? { ...result, ok: false, errorKind: 'transient' } : result
}

function findDue(tallies: readonly Tally[], lastNudge: string | null): ProgressDue | null {
  let best: { tally: Tally; action: 'nudge' | 'halt' } | null = null
  for (const tally of tallies) {
    const action = decideProgressAction(tally)
    if (action === null) continue
    const isFirst =
      best === null ||
      (action === best.action
        ? progressRules.indexOf(tally.rule) < progressRules.indexOf(best.tally.rule)
        : action === 'halt')
    if (isFirst) best = { tally, action }
  }
  if (best === null) return null
  const { rule, after, steps, calls } = best.tally
  const due: ProgressDue = {
    action: best.action,
    rule,
    count: Math.round(after),
    haltAt: steps?.haltAt ?? null,
    named: nameCalls(calls),
    refused: calls.every((call) => call.refusedBy === 'other'),
    wording: 0,
  }
  return formatFinding(due) === lastNudge ? { ...due, wording: 1 } : due
}

function formatFinding({ rule, wording }: ProgressDue): string {
  return `${rule} ${wording}`
}

const restoreState = is.createRestore(shape)

interface Words {
  /** A phrase that follows `You have` or `The model has`, without a full stop. */
  done: (tools: string, count: number, refused: boolean) => string
  /** Two wordings, so that consecutive nudges differ. */
  advice: readonly [string, string]
  /** What a person can do, other than raising the limit. */
  remedy: string
}

const markPolling = 'mark a tool that waits for something with polling: true'

const words: Record<ProgressRule, Words> = {
  stale: {
    done: (tools, count, refused) =>
      refused
        ? `called ${tools} again with the same arguments after it was refused`
        : `called ${tools} with the same arguments ${formatTimes(count + 1)} in a row, and got nothing new`,
    advice: [
      'Use what you have, change the arguments, or try another way.',
      'State what you expected to change and look for it elsewhere, or answer with what you know.',
    ],
    remedy: markPolling,
  },
  mixed: {
    done: (tools, count) =>
      `repeated earlier calls in the last ${formatRounds(count)}, the latest ${tools}, with the same results`,
    advice: [
      'Write down what you have learned, then do something that you have not done yet.',
      'Stop going around in circles. Decide based on what you know, or ask the user.',
    ],
    remedy: markPolling,
  },
  recurring: {
    done: (tools, count) =>
      `called ${tools} with the same arguments ${formatTimes(count)}, and nothing but numbers in its result changed`,
    advice: [
      'Calling again will not change it. Find out what it depends on, or continue without it.',
      'If you are waiting for something, wait longer between calls. Otherwise, look elsewhere.',
    ],
    remedy: markPolling,
  },
  failing: {
    done: (tools, count) => `made ${formatRounds(count)} of calls that all failed, the latest ${tools}`,
    advice: [
      'Find out what is wrong before you call another tool, or tell the user what you cannot do.',
      'Start from the last thing that worked, and change one thing at a time.',
    ],
    remedy: "look at the tools' errors",
  },
  sameError: {
    done: (tools, count) => `tried ${count} different calls to ${tools}, and the error was the same`,
    advice: [
      'The arguments that you change do not cause the error. Read it literally, and fix the problem it names.',
      'Other arguments will fail the same way. Find the cause elsewhere, or continue without this tool.',
    ],
    remedy: 'check that error: the tool may lack something it needs',
  },
  unknownTools: {
    done: (tools, count) => `made ${formatRounds(count)} of calls to tools that do not exist (${tools})`,
    advice: [
      'Use only the available tools, by their exact names.',
      'If none of your tools can do it, tell the user.',
    ],
    remedy: 'name the tools in the instructions, or add the missing tool',
  },
  refused: {
    done: (tools, count) => `made ${formatRounds(count)} of calls that were refused, the latest ${tools}`,
    advice: [
      'Read the reason and respect it, or tell the user that it is not allowed.',
      'Do not look for a workaround. Ask the user what to do instead.',
    ],
    remedy: 'state in the instructions which calls are not allowed',
  },
  policyDenied: {
    done: (tools, count) => `called ${tools} ${formatTimes(count)}, which is denied by policy`,
    advice: [
      'The same call will be denied again. Find another way, or tell the user that it is not allowed.',
      'It is not allowed. Continue without it, or tell the user.',
    ],
    remedy: 'permit the call in the tool, or forbid it in the instructions',
  },
  transient: {
    done: (tools, count) => `called ${tools} in ${formatRounds(count)}, and it failed with temporary errors`,
    advice: [
      'Continue without it for now, or tell the user that it is unavailable.',
      'It may be down for longer. Do the work that does not need it.',
    ],
    remedy: 'check that the service behind it is up',
  },
}

function toSetting({ rule }: Pick<ProgressDue, 'rule'>): Exclude<ProgressRule, 'recurring'> {
  return rule === 'recurring' ? 'stale' : rule
}

function formatDone({ rule, named, count, refused }: ProgressDue, who = 'You have'): string {
  return `${who} ${words[rule].done(named.tools, count, refused)}.`
}

function formatProgressNudge(due: ProgressDue): string {
  const { advice, remedy } = words[due.rule]
  const forDeveloper = remedy === markPolling ? ` (For the developer: ${markPolling}.)` : ''
  return `${formatDone(due)} ${advice[due.wording === 1 ? 1 : 0]}${forDeveloper}`
}

function formatProgressRefusal(due: ProgressDue): string {
  const left = due.haltAt === null ? null : Math.max(1, due.haltAt - due.count)
  const end = left === null ? '' : ` The run stops after at most ${left} more like this.`
  return `Not executed. ${formatDone(due)} ${words[due.rule].advice[due.count % 2 === 0 ? 0 : 1]}${end}`
}

function formatProgressHalt(due: ProgressDue): string {
  const { rule, haltAt } = due
  return `${formatDone(due, 'The model has')} To allow more, raise guardrails.progress.${toSetting(due)}.haltAt (now ${haltAt}); ${words[rule].remedy}.`
}
