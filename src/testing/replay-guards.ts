import { optionsRule, expectArgument, listRule } from '../core/base/expect-argument.js'
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
