import { optionsRule, expectArgument, listRule, objectRule } from '../core/base/values.js'
import { createCallsFact, createResultsFact } from '../../guards/facts.js'
import {
  collectFindings,
  type GuardrailsState,
  getInitialGuardrails,
  startTurn,
  observeAll,
} from '../../guards/state.js'
import type { GuardName } from '../../guards/roster.js'
import type { Fact, Finding } from '../../guards/types.js'
import { createRefusalTest } from '../../machines/agent/actions/judge-batch.js'
import { toCallFact, toResultFact } from '../../machines/agent/call-facts.js'
import type { AgentConfigInput } from '../../machines/agent/config.js'
import type { Message } from '../../machines/agent/messages.js'
import type { ResultStatus, ToolErrorKind, ToolTraits } from '../../machines/agent/batch-calls.js'
import { resolveConfig } from '../core/config/resolve-config.js'
import type { Usage } from '../../machines/agent/usage.js'

/** A call as it was recorded. */
export interface RecordedCall {
  name: string
  /** JSON text, as the model wrote it. */
  arguments: string
  /** What the model read. */
  result: string
  /** Default `ok`. */
  status?: ResultStatus | undefined
  /** Why it failed. */
  errorKind?: ToolErrorKind | undefined
  /** Milliseconds. Default 0: not known. */
  durationMs?: number | undefined
}

/**
 * A response of the model that asked for calls.
 *
 * @example
 * const steps: RecordedStep[] = [{ user: true, calls: [] }, { calls: [{ name: 'ls', arguments: '{}', result: 'a.txt' }] }]
 * const { findings } = replaySteps(steps)
 */
export interface RecordedStep {
  /** Whether a user message came before it: a turn begins. */
  user?: boolean | undefined
  calls: readonly RecordedCall[]
}

/** What tools are, by name: as in `defineTool`. */
export type RecordedTools = Readonly<Record<string, Partial<Pick<ToolTraits, 'readOnly' | 'polling'>>>>

/** What a guard would have said. */
export interface ReplayedFinding {
  /** Which response, counted from 0 among those that asked for calls. */
  step: number
  /** `before` its calls, or `after` them. */
  when: 'before' | 'after'
  action: 'nudge' | 'block' | 'halt'
  guard: GuardName
  /** Which of the guard's rules, where it has several. */
  rule?: string
  /** What the model, or after a halt people, would have read. */
  message: string
  /** What was seen, at most 600 characters. */
  evidence: string
}

export interface GuardReplay {
  findings: ReplayedFinding[]
  /** Responses that asked for calls. */
  steps: number
  /** Calls that would have been carried out, and calls that would have been refused. */
  calls: { executed: number; refused: number }
  /** The first halt; null when there would have been none. */
  halt: ReplayedFinding | null
}

/**
 * What the guards would have said about a session under another configuration: they look at the recorded calls and
 * results as they would have looked at live ones. The model goes on as it was recorded, whatever it would have been told
 * or refused, so what comes after a nudge is an upper bound. After a halt the turn is over; the next user message begins
 * another one.
 *
 * Throws a ConfigError for a configuration that is none.
 *
 * @param messages a transcript: `result.messages`, `session.messages`, or one of your own database
 * @param config as for `createAgent`; only `preset` and `guardrails` are read
 * @param tools which of the tools are `readOnly` or `polling`
 * @example
 * const { halt, findings } = replayGuards(result.messages, { guardrails: { progress: { stale: { haltAt: 8 } } } })
 */
export function replayGuards(
  messages: readonly Message[],
  config: AgentConfigInput = {},
  tools: RecordedTools = {},
): GuardReplay {
  expectArgument('replayGuards(messages)', messages, listRule('a list of messages'))
  return replaySteps(toSteps(messages), config, tools)
}

/**
 * The same for calls that were recorded in another form.
 *
 * @example
 * const look: RecordedCall = { name: 'look', arguments: '{}', result: 'nothing' }
 * const steps: RecordedStep[] = Array.from({ length: 12 }, () => ({ calls: [look] }))
 * const { halt, findings } = replaySteps(steps, { guardrails: { progress: { stale: { haltAt: 8 } } } })
 * console.log(findings.map(({ step, action }) => `${step} ${action}`), halt?.rule) // → … stale
 */
export function replaySteps(
  steps: readonly RecordedStep[],
  config: AgentConfigInput = {},
  tools: RecordedTools = {},
): GuardReplay {
  expectArgument('replaySteps(steps)', steps, listRule('a list of steps'))
  expectArgument('replaySteps(steps, config)', config, optionsRule)
  expectArgument('replaySteps(steps, config, tools)', tools, optionsRule)
  const { guardrails } = resolveConfig({ preset: config.preset, guardrails: config.guardrails })
  const traits = Object.fromEntries(
    Object.entries(tools).map(([name, { readOnly = false, polling = false }]) => [
      name,
      { readOnly, polling },
    ]),
  )
  const replay: GuardReplay = { findings: [], steps: 0, calls: { executed: 0, refused: 0 }, halt: null }
  let state: GuardrailsState = getInitialGuardrails()
  let isOver = false
  const observeFact = (fact: Fact, step: number, when: ReplayedFinding['when']): Finding<GuardName>[] => {
    state = observeAll(state, fact, guardrails)
    const said = collectFindings(state, guardrails)
    for (const { action, guard, rule, message, evidence } of said) {
      const finding = { step, when, action, guard, ...(rule !== undefined && { rule }), message, evidence }
      if (action === 'halt' && isOver) continue
      replay.findings.push(finding)
      if (action !== 'halt') continue
      replay.halt ??= finding
      isOver = true
    }
    return said
  }

  for (const [index, { user = false, calls }] of steps.entries()) {
    if (user) {
      state = startTurn(state)
      isOver = false
    }
    if (calls.length === 0) {
      if (!isOver) observeFact({ type: 'text' }, index, 'after')
      continue
    }
    replay.steps += 1
    if (isOver) continue
    const facts = calls.map((call) => toCallFact(traits, call, guardrails))
    const refusals = observeFact(createCallsFact(facts, guardrails), index, 'before').map((finding) => ({
      guard: finding.guard,
      refuses: createRefusalTest(finding),
    }))
    // A halt before its calls: none of them runs.
    if (isOver) continue
    const results = calls.map((call, at) => {
      const fact = facts[at]
      const asked = { ...call, ...(fact && { fact }) }
      const by = refusals.filter(({ refuses }) => refuses(asked))[0]?.guard
      const { status = 'ok', errorKind, durationMs = 0 } = call
      if (by === undefined) replay.calls.executed += 1
      else replay.calls.refused += 1
      const result = by
        ? { status: 'blocked' as const, content: '', durationMs: 0, refusedBy: by }
        : { status, content: call.result, durationMs, ...(errorKind && { errorKind }) }
      return toResultFact(traits, asked, result, guardrails)
    })
    observeFact(createResultsFact(results, guardrails, index), index, 'after')
  }
  return replay
}

/** The steps of a transcript. A call without a result was still open, and says nothing. */
export function toSteps(messages: readonly Message[]): RecordedStep[] {
  const steps: RecordedStep[] = []
  let user = false
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') user ||= message.internal !== true && message.data?.['reason'] !== 'steering'
    if (message.role !== 'assistant') continue
    const results = collectResults(messages, index)
    const calls = (message.tool_calls ?? []).flatMap(({ id, function: called }): RecordedCall[] => {
      const result = results.get(id)
      if (result === undefined) return []
      const status = result.data?.['status'] as ResultStatus | undefined
      return [{ name: called.name, arguments: called.arguments, result: toText(result.content), status }]
    })
    steps.push({ user, calls })
    user = false
  }
  return steps
}

type ToolResultMessage = Extract<Message, { role: 'tool' }>

function collectResults(messages: readonly Message[], index: number): Map<string, ToolResultMessage> {
  const results = new Map<string, ToolResultMessage>()
  for (let at = index + 1; at < messages.length; at += 1) {
    const message = messages[at]
    if (message?.role !== 'tool') break
    results.set(message.tool_call_id, message)
  }
  return results
}

/** Histories of other programs have results that are no text. */
function toText(content: unknown): string {
  return typeof content === 'string' ? content : (JSON.stringify(content) ?? '')
}

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
