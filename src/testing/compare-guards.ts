import { expectArgument, listRule, objectRule, optionsRule } from '../core/base/expect-argument.js'
import { resolveConfig } from '../core/config/resolve-config.js'
import type { AgentConfigInput } from '../../machines/agent/config.js'
import type { Message } from '../../machines/agent/messages.js'
import type { Usage } from '../../machines/agent/usage.js'
import {
  type GuardReplay,
  type RecordedStep,
  type RecordedTools,
  type ReplayedFinding,
  replaySteps,
  toSteps,
} from './replay-guards.js'

/** Where rules would have stopped one turn of a session. */
export interface GuardStop {
  /** Which response, counted from 0. */
  step: number
  /** `before` the calls of that response, or `after` it. */
  when: ReplayedFinding['when']
  /** The guard that halts, or the limit. */
  by: ReplayedFinding['guard'] | 'max_steps'
  /** Which of the guard's rules, where it has several. */
  rule?: string
  message: string
}

/** What would not have been done, because a turn had ended. */
export interface GuardSavings {
  responses: number
  calls: number
  /** Null when the usage of a response that is saved is not known. */
  tokens: number | null
  /** USD. Null when that, or a price, is not known. */
  cost: number | null
}

/** What one configuration would have made of a session. */
export interface GuardComparison {
  /** Its name. */
  name: string
  /** Where it stops turns: at most once each. */
  stops: GuardStop[]
  saved: GuardSavings
  /** All that the guards say. */
  replay: GuardReplay
}

/** What is known of a session beside its transcript. */
export interface CompareGuardsOptions {
  /** Which of the tools are `readOnly` or `polling`. */
  tools?: RecordedTools
  /** The usage of each assistant message of the transcript, in order; null where it is not known. */
  usage?: readonly (Pick<Usage, 'totalTokens' | 'cost'> | null)[]
}

/**
 * Where the guards, and the step cap, of several configurations would have stopped a session, and what that would have
 * saved. The model goes on as it was recorded, as with `replayGuards`: a turn that is stopped ends, and the next user message
 * begins another one.
 *
 * Throws a ConfigError for a configuration that is none.
 *
 * @example
 * const { messages } = await agent.run('What is new?').result
 * const [first] = compareGuards(messages, { aar: presets.aar })
 * console.log(first?.stops.length) // → 0
 */
export function compareGuards(
  messages: readonly Message[],
  configs: Readonly<Record<string, AgentConfigInput>>,
  options: CompareGuardsOptions = {},
): GuardComparison[] {
  expectArgument('compareGuards(messages)', messages, listRule('a list of messages'))
  expectArgument(
    'compareGuards(messages, configs)',
    configs,
    objectRule([], 'an object of configurations by name'),
  )
  expectArgument('compareGuards(messages, configs, options)', options, optionsRule)
  const steps = toSteps(messages)
  return Object.entries(configs).map(([name, config]) => {
    const replay = replaySteps(steps, config, options.tools)
    const { preset, limits, guardrails } = config
    const { maxSteps } = resolveConfig({ preset, limits, guardrails }).limits
    const halts = new Map(
      replay.findings.filter(({ action }) => action === 'halt').map((finding) => [finding.step, finding]),
    )
    const stops: GuardStop[] = []
    const saved: GuardSavings = { responses: 0, calls: 0, tokens: 0, cost: 0 }
    for (const { from, to } of listTurns(steps)) {
      const stop = findStop(halts, maxSteps, from, to)
      if (!stop) continue
      stops.push(stop)
      addSavings(saved, steps, stop, to, options.usage ?? [])
    }
    return { name, stops, saved, replay }
  })
}

/** The first and the last response of each turn. */
function listTurns(steps: readonly RecordedStep[]): { from: number; to: number }[] {
  const starts = steps.flatMap(({ user }, i) => (user || i === 0 ? [i] : []))
  return starts.map((from, i) => ({ from, to: (starts[i + 1] ?? steps.length) - 1 }))
}

function findStop(
  halts: ReadonlyMap<number, ReplayedFinding>,
  maxSteps: number | null,
  from: number,
  to: number,
): GuardStop | undefined {
  const last = maxSteps === null ? Number.POSITIVE_INFINITY : from + maxSteps - 1
  for (let at = from; at <= Math.min(to, last); at++) {
    const halt = halts.get(at)
    if (!halt) continue
    const { step, when, guard: by, rule, message } = halt
    return { step, when, by, ...(rule !== undefined && { rule }), message }
  }
  if (last >= to) return undefined
  const message = `All ${maxSteps ?? 0} steps of the turn are used.`
  return { step: last, when: 'after', by: 'max_steps', message }
}

function addSavings(
  saved: GuardSavings,
  steps: readonly RecordedStep[],
  { step, when }: GuardStop,
  to: number,
  usage: NonNullable<CompareGuardsOptions['usage']>,
): void {
  if (when === 'before') saved.calls += steps[step]?.calls.length ?? 0
  for (let at = step + 1; at <= to; at++) {
    const known = usage[at]
    saved.responses += 1
    saved.calls += steps[at]?.calls.length ?? 0
    saved.tokens = known && saved.tokens !== null ? saved.tokens + known.totalTokens : null
    saved.cost = known && known.cost !== null && saved.cost !== null ? saved.cost + known.cost : null
  }
}
