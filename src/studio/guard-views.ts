import type { ProgressConfig, StepsWithBlock } from '../../guards/progress-config.js'
import { collectFindings } from '../../guards/state.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { GuardView } from './protocol.js'
import { toShownText } from './shown-values.js'

export function createGuardViews(context: AgentContext): GuardView[] {
  const { guardrails: state, config, verdict } = context
  const spoken = collectFindings(state, config.guardrails)
  const findEvidence = (guard: string, rule?: string): string => {
    const current = verdict?.guard === guard && verdict.rule === rule ? verdict : undefined
    const found = current ?? spoken.find((one) => one.guard === guard && one.rule === rule)
    return toShownText(found?.evidence ?? '')
  }
  return [
    ...createProgressViews(
      context,
      (rule) => findEvidence('no_progress', rule) || findEvidence('policy_denied', rule),
    ),
    ...createOtherViews(context, findEvidence),
    ...createLimitViews(context),
    ...Object.entries(state.user).map(([name, remembered]) => ({
      name,
      watches: '',
      streak: null,
      threshold: null,
      evidence:
        verdict?.userGuard === name
          ? toShownText(verdict.evidence)
          : toShownText(JSON.stringify(remembered), 600),
      next: 'custom guard',
      isOn: true,
    })),
  ]
}

type Rule = Exclude<keyof ProgressConfig, 'waiting' | 'memory' | 'onHalt' | 'lastWords'>

function createProgressViews(context: AgentContext, findEvidence: (rule: string) => string): GuardView[] {
  const settings = context.config.guardrails.progress
  const state = context.guardrails.progress
  const counts: Record<Rule, number | null> = {
    stale: state.batch === null ? 0 : state.stale,
    mixed: state.batch === null ? state.stale : 0,
    failing: state.failing,
    sameError: Math.max(0, ...state.tools.map(({ errors }) => errors)),
    unknownTools: state.unknownTools,
    refused: state.refused,
    policyDenied: null,
    transient: state.transient,
  }
  return Object.entries(counts).map(([rule, count]) => {
    const steps = settings?.[rule as Rule] ?? null
    const streak = count === null ? null : Math.round(count * 10) / 10
    return {
      name: `progress.${rule}`,
      watches: progressWatches[rule as Rule],
      streak,
      ...findNext(streak ?? 0, steps),
      evidence: findEvidence(rule),
      isOn: steps !== null,
    }
  })
}

const progressWatches: Record<Rule, string> = {
  stale: 'steps in a row with the same calls and no new results',
  mixed: 'steps in a row with different calls and no new results',
  failing: 'steps in a row in which every call failed',
  sameError: 'calls to one tool that fail with the same error',
  unknownTools: 'calls to tools that do not exist',
  refused: 'steps in a row in which every call was refused',
  policyDenied: "the same call, denied by its tool's policy",
  transient: 'temporary failures in a row without a success',
}

function findNext(count: number, steps: object | null): Pick<GuardView, 'threshold' | 'next'> {
  const { nudgeAt, blockAt, haltAt } = (steps ?? {}) as Partial<StepsWithBlock>
  const all: [string, number | null | undefined][] = [
    ['nudge', nudgeAt],
    ['block', blockAt],
    ['halt', haltAt],
  ]
  const next = all.find(([, at]) => at != null && count < at) ?? all.findLast(([, at]) => at != null)
  if (next === undefined) return { threshold: null, next: '' }
  return { threshold: next[1] ?? null, next: `${next[0]} at ${next[1]}` }
}

const otherWatches: Record<string, string> = {
  repeatedCall: 'steps in a row with the same call',
  repeatedOutput: 'rounds with the same results',
  cycle: 'rounds that repeat calls in the same order',
  failing: 'failed calls in a row',
  terminalDelegation: 'sub-agents that failed permanently',
  steps: 'model responses in this run',
  attempts: 'attempts of the current request',
  continuations: 'truncated answers that were continued',
  reprompts: 'repeated prompts after empty answers',
  'empty answers': 'repeated requests after empty answers',
  repairs: 'answers that did not match the schema',
}

function createOtherViews(
  { guardrails: state, config: { guardrails: config } }: AgentContext,
  findEvidence: (guard: string, rule?: string) => string,
): GuardView[] {
  const { repeatedCall, repeatedOutput, cycle, failing, maxRepeatedToolSteps } = config
  const view = (
    name: string,
    guard: string,
    isOn: boolean,
    count: Partial<Pick<GuardView, 'streak' | 'threshold' | 'next'>>,
  ): GuardView => ({
    name,
    watches: otherWatches[name] ?? '',
    streak: null,
    threshold: null,
    next: '',
    ...(isOn ? count : { streak: count.streak ?? null }),
    evidence: findEvidence(guard),
    isOn,
  })
  return [
    view('repeatedCall', 'repeated_call', repeatedCall !== null, {
      streak: state.repeatedCall.count,
      threshold: maxRepeatedToolSteps,
      next: `${repeatedCall?.onRepeat} at ${maxRepeatedToolSteps}`,
    }),
    view('repeatedOutput', 'repeated_output', repeatedOutput !== null, {
      streak: state.repeatedOutput.rounds,
      threshold: repeatedOutput?.rounds ?? null,
      next: `halt at ${repeatedOutput?.rounds}`,
    }),
    view('cycle', 'cycle', cycle !== null, {
      streak: Math.max(0, ...state.cycle.matches),
      next: `nudge after ${cycle?.nudgeAt} rounds, halt after ${cycle?.haltAt}`,
    }),
    view('failing', 'repeated_failure', failing !== null, {
      threshold: failing && Math.min(failing.identical, failing.any),
      next: `halt at ${failing?.identical} identical failures, or ${failing?.any} of any kind`,
    }),
    view('terminalDelegation', 'terminal_delegation', config.terminalDelegation !== null, {
      next: 'halts when retrying a sub-agent cannot help',
    }),
  ]
}

function createLimitViews(context: AgentContext): GuardView[] {
  const { config, attempt, recoveries, reprompts, emptyRetries, outputRepairs, steps } = context
  const { emptyAnswer, maxTokensRecoveries } = config.guardrails
  const counter = (name: string, streak: number, threshold: number | null, next: string): GuardView => ({
    name,
    watches: otherWatches[name] ?? '',
    streak,
    threshold,
    evidence: '',
    next: threshold === null || threshold === 0 ? '' : next,
    isOn: threshold !== null && threshold > 0,
  })
  const { maxSteps } = config.limits
  return [
    counter('steps', steps, maxSteps, `the run ends after ${maxSteps} steps`),
    counter('attempts', attempt, config.retry.maxAttempts, 'the run ends with the provider’s error'),
    counter('continuations', recoveries, maxTokensRecoveries, 'a truncated answer is accepted'),
    counter('reprompts', reprompts, emptyAnswer?.reprompts ?? null, 'an empty answer ends the run'),
    counter('empty answers', emptyRetries, emptyAnswer?.retries ?? null, 'an empty answer ends the run'),
    counter('repairs', outputRepairs, config.completion.maxOutputRepairs, 'an invalid answer ends the run'),
  ]
}
