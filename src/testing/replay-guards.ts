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

export interface RecordedCall {
  name: string
  /** The arguments as JSON text, as written by the model. */
  arguments: string
  /** The result sent to the model. */
  result: string
  /** Defaults to `ok`. */
  status?: ResultStatus | undefined
  errorKind?: ToolErrorKind | undefined
  /** The duration in milliseconds. Defaults to 0 (unknown). */
  durationMs?: number | undefined
}

/**
 * A model response with tool calls.
 *
 * @example
 * const steps: RecordedStep[] = [{ user: true, calls: [] }, { calls: [{ name: 'ls', arguments: '{}', result: 'a.txt' }] }]
 * const { findings } = replaySteps(steps)
 */
export interface RecordedStep {
  /** Whether the response follows a user message and therefore starts a turn. */
  user?: boolean | undefined
  calls: readonly RecordedCall[]
}

/** Tool traits by name, as in `defineTool`. */
export type RecordedTools = Readonly<Record<string, Partial<Pick<ToolTraits, 'readOnly' | 'polling'>>>>

/** A guard finding. */
export interface ReplayedFinding {
  /** Index of the response among all responses with calls, from 0. */
  step: number
  /** `before` or `after` the calls of the response. */
  when: 'before' | 'after'
  action: 'nudge' | 'block' | 'halt'
  guard: GuardName
  /** The rule, if the guard has several. */
  rule?: string
  /** The message to the model, or to people after a halt. */
  message: string
  /** Observations, at most 600 characters. */
  evidence: string
}

export interface GuardReplay {
  findings: ReplayedFinding[]
  /** The number of responses with calls. */
  steps: number
  calls: { executed: number; refused: number }
  /** The first halt, or null. */
  halt: ReplayedFinding | null
}

/**
 * Applies guards with another configuration to a recorded session. The guards inspect the recorded calls and results
 * as in a live run. The model's behavior is fixed, so findings after a nudge are an upper bound. A halt ends the turn,
 * and the next user message starts a new turn.
 *
 * Throws a ConfigError for an invalid configuration.
 *
 * @param messages a transcript: `result.messages`, `session.messages`, or messages from your database
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
 * Like `replayGuards`, for calls recorded in another format.
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
    const findings = collectFindings(state, guardrails)
    for (const { action, guard, rule, message, evidence } of findings) {
      const finding = { step, when, action, guard, ...(rule !== undefined && { rule }), message, evidence }
      if (action === 'halt' && isOver) continue
      replay.findings.push(finding)
      if (action !== 'halt') continue
      replay.halt ??= finding
      isOver = true
    }
    return findings
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
    // A halt before the calls means that none of them runs.
    if (isOver) continue
    const results = calls.map((call, at) => {
      const fact = facts[at]
      const guardedCall = { ...call, ...(fact && { fact }) }
      const by = refusals.filter(({ refuses }) => refuses(guardedCall))[0]?.guard
      const { status = 'ok', errorKind, durationMs = 0 } = call
      if (by === undefined) replay.calls.executed += 1
      else replay.calls.refused += 1
      const result = by
        ? { status: 'blocked' as const, content: '', durationMs: 0, refusedBy: by }
        : { status, content: call.result, durationMs, ...(errorKind && { errorKind }) }
      return toResultFact(traits, guardedCall, result, guardrails)
    })
    observeFact(createResultsFact(results, guardrails, index), index, 'after')
  }
  return replay
}

/** The steps of a transcript, without calls that were still open. */
function toSteps(messages: readonly Message[]): RecordedStep[] {
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

/** Transcripts from other programs may contain results that are not text. */
function toText(content: unknown): string {
  return typeof content === 'string' ? content : (JSON.stringify(content) ?? '')
}

/** Where a configuration would have stopped a turn. */
export interface GuardStop extends Pick<ReplayedFinding, 'step' | 'when' | 'rule' | 'message'> {
  /** The guard or limit. */
  by: ReplayedFinding['guard'] | 'max_steps'
}

/** The savings if each turn had ended at its stop. */
export interface GuardSavings {
  responses: number
  calls: number
  /** The saved tokens. Null if the usage of a saved response is unknown. */
  tokens: number | null
  /** The saved cost in USD. Null if usage or a price is unknown. */
  cost: number | null
}

/** The effect of one configuration on a session. */
export interface GuardComparison {
  name: string
  /** The stops, at most one per turn. */
  stops: GuardStop[]
  saved: GuardSavings
  replay: GuardReplay
}

/** Information that the transcript does not contain. */
export interface CompareGuardsOptions {
  /** Tools that are `readOnly` or `polling`. */
  tools?: RecordedTools
  /** Usage per assistant message, in order; null if unknown. */
  usage?: readonly (Pick<Usage, 'totalTokens' | 'cost'> | null)[]
}

/**
 * Finds where the guards and step caps of several configurations would have stopped a session, and the resulting
 * savings. As in `replayGuards`, the model's behavior is fixed. A stopped turn ends, and the next user message starts a
 * new turn.
 *
 * Throws a ConfigError for an invalid configuration.
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
    objectRule([], 'an object that maps names to configurations'),
  )
  expectArgument('compareGuards(messages, configs, options)', options, optionsRule)
  const steps = toSteps(messages)
  const { tools, usage = [] } = options
  const starts = steps.flatMap(({ user }, i) => (user || i === 0 ? [i] : []))
  const turns = starts.map((from, i) => ({ from, to: (starts[i + 1] ?? steps.length) - 1 }))
  return Object.entries(configs).map(([name, config]) => {
    const replay = replaySteps(steps, config, tools)
    const { preset, limits, guardrails } = config
    const { maxSteps } = resolveConfig({ preset, limits, guardrails }).limits
    const stops: GuardStop[] = []
    const saved: GuardSavings = { responses: 0, calls: 0, tokens: 0, cost: 0 }
    for (const { from, to } of turns) {
      const stop = findStop(replay, maxSteps, from, to)
      if (!stop) continue
      stops.push(stop)
      if (stop.when === 'before') saved.calls += steps[stop.step]?.calls.length ?? 0
      for (let at = stop.step + 1; at <= to; at++) {
        const known = usage[at]
        saved.responses += 1
        saved.calls += steps[at]?.calls.length ?? 0
        saved.tokens = known && saved.tokens !== null ? saved.tokens + known.totalTokens : null
        saved.cost = known && known.cost !== null && saved.cost !== null ? saved.cost + known.cost : null
      }
    }
    return { name, stops, saved, replay }
  })
}

/** Where a turn would have stopped: at its last halt in the first response with one, or at the step cap. */
function findStop({ findings }: GuardReplay, maxSteps: number | null, from: number, to: number) {
  const last = maxSteps === null ? Number.POSITIVE_INFINITY : from + maxSteps - 1
  const halts = findings.filter(
    ({ action, step }) => action === 'halt' && step >= from && step <= Math.min(to, last),
  )
  const first = Math.min(...halts.map(({ step }) => step))
  const halt = halts.findLast(({ step }) => step === first)
  if (halt) {
    const { step, when, guard: by, rule, message } = halt
    return { step, when, by, ...(rule !== undefined && { rule }), message }
  }
  if (last >= to) return undefined
  const message = `All ${maxSteps ?? 0} steps of the turn are used.`
  return { step: last, when: 'after' as const, by: 'max_steps' as const, message }
}
