import type { AgentContext } from '../../../machines/agent/context.js'
import {
  type UserFinding,
  type UserGuardsOutput,
  type UserStates,
  getUserState,
  toUserState,
} from '../../../guards/user-state.js'
import type { Json } from '../../../machines/agent/json.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { toEvidence, truncate } from '../../../guards/lib/words.js'
import { formatArguments } from '../../../guards/lib/fingerprint.js'
import type { EffectScope } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { deepFreeze, describeArgument } from '../base/values.js'
import { valueOr } from '../base/maybe-promise.js'
import type {
  GuardedCall,
  GuardedResult,
  GuardFact,
  GuardContext,
  UserGuard,
  StopQuestion,
  StopWhen,
} from '../user-guards/guard.js'
import { type CallAbort, attachSignal, runWithTimeout } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import { createActorError, describeError, rememberThrown } from '../base/errors.js'
import { findAnsweringCall, findEndingCall } from '../../../machines/agent/call-state.js'
import type { ModelActorError } from '../../../machines/agent/model-response.js'
import { readOutput } from '../structured/read-output.js'

/** Errors and missing verdicts become plain data. A result may also be the answer of the run. */
export async function consultGuards(
  parts: AgentParts,
  on: 'calls' | 'results',
  { abort, runtime, context }: EffectScope,
): Promise<UserGuardsOutput> {
  const fact = on === 'calls' ? createGuardCallsFact(context) : createGuardResultsFact(context)
  const app = runtime.binding.context
  const { user } = context.guardrails
  const answers = await Promise.all(
    parts.guards.map((guard) => askGuard(guard, user, fact, app, runtime.clock, abort)),
  )
  const consulted = toConsultation(answers, fact)
  if (fact.type === 'calls' || consulted.findings.some(({ action }) => action === 'halt')) return consulted
  const question = { results: fact.results, step: context.steps, context: app }
  return { ...consulted, ...(await findResultAnswer(parts, context, question)) }
}

function createGuardCallsFact(context: AgentContext): GuardFact {
  const open = context.calls.filter((call) => call.result === undefined && !call.unloaded)
  return deepFreeze({ type: 'calls', calls: open.map((call) => toGuardedCall(context, call)) })
}

function createGuardResultsFact(context: AgentContext): GuardFact {
  const results = context.calls.flatMap((call): GuardedResult[] => {
    if (call.result === undefined || call.unloaded) return []
    const { status, content, errorKind = null } = call.result
    return [{ ...toGuardedCall(context, call), status, content, errorKind }]
  })
  return deepFreeze({ type: 'results', results })
}

function toGuardedCall({ tools }: AgentContext, { id, name, arguments: text }: BatchCall): GuardedCall {
  const traits = Object.hasOwn(tools, name) ? tools[name] : undefined
  return {
    id,
    name,
    arguments: readArguments(text),
    argumentsText: text,
    readOnly: traits?.readOnly ?? false,
    polling: traits?.polling ?? false,
  }
}

/** Parses arguments in the same way as tools. For a tool without parameters, models send empty arguments or null. */
function readArguments(text: string): Json {
  if (text.trim() === '') return {}
  // Content that is nested too deeply to freeze counts as unreadable.
  return valueOr(() => deepFreeze((JSON.parse(text) as Json) ?? {}), null)
}

type CheckedGuardVerdict =
  | { action: 'nudge'; message: string }
  | { action: 'block'; message: string; callIds: string[] | null }
  | { action: 'halt'; message: string; evidence: string | null }
  | null

const longestMessage = 2000

function readGuardVerdict(
  value: unknown,
  fact: GuardFact,
): { verdict: CheckedGuardVerdict } | { problem: string } {
  if (value === undefined || value === true) return { verdict: null }
  if (typeof value !== 'object' || value === null)
    return { problem: `verdict() returned ${describeArgument(value)}; ${shapes}` }
  const { action, message, evidence, callIds: ids } = value as Record<string, unknown>
  if (action === 'ok') return { verdict: null }
  if (action !== 'nudge' && action !== 'block' && action !== 'halt') {
    return { problem: `verdict() returned an object without a valid action; ${shapes}` }
  }
  if (typeof message !== 'string' || message.trim() === '') {
    return { problem: `verdict() returned a ${action} without a message; ${shapes}` }
  }
  const words = { message: truncate(message, longestMessage) }
  if (action === 'nudge') return { verdict: { action, ...words } }
  if (action === 'halt') {
    return { verdict: { action, ...words, evidence: typeof evidence === 'string' ? evidence : null } }
  }
  // A copy, because the guard may change its list. Another value counts as a list with one invalid id.
  const list: unknown[] = Array.isArray(ids) ? [...(ids as unknown[])] : [undefined]
  const callIds = ids === undefined ? null : list
  // An empty list refuses nothing, so guards do not have to check whether calls remain.
  if (callIds?.length === 0) return { verdict: null }
  const problem = findBlockProblem(callIds, fact)
  return problem === null
    ? { verdict: { action, ...words, callIds: callIds as string[] | null } }
    : { problem }
}

const shapes = "return nothing, true, { action: 'ok' }, or { action: 'nudge' | 'block' | 'halt', message }"

function findBlockProblem(callIds: readonly unknown[] | null, fact: GuardFact): string | null {
  if (fact.type !== 'calls') {
    return 'verdict() returned a block for results, but calls that have already run cannot be refused. Nudge or halt instead'
  }
  const known: readonly unknown[] = fact.calls.map(({ id }) => id)
  if (callIds === null || callIds.every((id) => known.includes(id))) return null
  return `verdict() returned a block whose callIds are not ids of these calls (${known.join(', ')})`
}

interface GuardAnswer {
  guard: UserGuard
  state: Json
  verdict: CheckedGuardVerdict
  failure?: string
}

/** Never rejects. */
function askGuard(
  guard: UserGuard,
  states: UserStates,
  fact: GuardFact,
  app: unknown,
  clock: Clock,
  outer: CallAbort,
): Promise<GuardAnswer> {
  const { timeoutMs } = guard
  const before = deepFreeze(getUserState(states, guard.name, guard.initial))
  let state = before
  const failed = (failure: string): GuardAnswer => ({ guard, state, verdict: null, failure })
  return runWithTimeout(
    { timeoutMs, clock, outer, timedOut: () => failed(`verdict() took longer than ${timeoutMs} ms`) },
    async (abort) => {
      try {
        if (guard.observe) {
          const next = toUserState(guard.observe(before, fact))
          if ('problem' in next) return failed(`observe() returned a state that ${next.problem}`)
          state = deepFreeze(next.state)
        }
        const question: GuardContext = attachSignal({ fact, context: app }, abort)
        const reading = readGuardVerdict(await guard.verdict(state, question), fact)
        return 'problem' in reading ? failed(reading.problem) : { guard, state, verdict: reading.verdict }
      } catch (error) {
        return failed(`it threw: ${describeError(error)}`)
      }
    },
  )
}

const weight: Record<UserFinding['action'], number> = { halt: 0, block: 1, nudge: 2 }

function toConsultation(answers: readonly GuardAnswer[], fact: GuardFact): UserGuardsOutput {
  const ignored = answers.filter(({ guard, failure }) => failure !== undefined && guard.onError === 'ignore')
  const remembering = answers.filter(({ guard }) => guard.observe)
  return {
    states: Object.fromEntries(remembering.map(({ guard, state }) => [guard.name, state])),
    findings: answers
      .flatMap((answer) => toFinding(answer, fact) ?? [])
      .sort((a, b) => weight[a.action] - weight[b.action]),
    warnings: ignored.map(({ guard, failure }) =>
      toEvidence(`Guard '${guard.name}' failed and was ignored (onError): ${failure}.`),
    ),
  }
}

function toFinding({ guard, verdict, failure }: GuardAnswer, fact: GuardFact): UserFinding | null {
  const { name, onHalt, onError } = guard
  const common = { guard: name, onHalt, callIds: null }
  if (failure !== undefined) {
    if (onError === 'ignore') return null
    const message = toEvidence(
      `Guard '${name}' failed: ${failure}. A failing guard may miss something, so the run stops. Fix the guard, or set its onError to 'ignore'.`,
    )
    return { ...common, action: 'halt', message, evidence: toEvidence(`${name}: ${failure}`) }
  }
  if (verdict === null) return null
  const { action, message } = verdict
  const callIds = action === 'block' ? verdict.callIds : null
  const evidence = action === 'halt' ? verdict.evidence : null
  return {
    ...common,
    action,
    callIds,
    message:
      { nudge: '', block: 'Not executed: ', halt: `Guard '${name}' stopped the run: ` }[action] + message,
    evidence: evidence === null ? describeCalls(name, fact, callIds) : toEvidence(`${name}: ${evidence}`),
  }
}

function describeCalls(name: string, fact: GuardFact, callIds: readonly string[] | null): string {
  const calls = fact.type === 'calls' ? fact.calls : fact.results
  const matching = calls.filter(({ id }) => callIds === null || callIds.includes(id))
  return toEvidence(
    `${name}: ${matching.map((call) => `${call.name}(${formatArguments(call.argumentsText)})`).join(', ')}`,
  )
}

/** Rejects with a plain failure if `stopWhen` fails. */
async function findResultAnswer(
  { stopWhen, output }: AgentParts,
  batch: AgentContext,
  question: StopQuestion,
): Promise<Pick<UserGuardsOutput, 'stops' | 'outputProblem'>> {
  const ends = findEndingCall(batch) !== undefined
  const stops = !ends && stopWhen !== undefined && (await askStopWhen(stopWhen, question))
  if (!ends && !stops) return {}
  const decision = stops ? { stops } : {}
  if (output === undefined) return decision
  const text = findAnsweringCall(batch)?.result?.content ?? batch.output
  const reading = await readOutput(text, output)
  return reading.ok ? decision : { ...decision, outputProblem: reading.problem }
}

async function askStopWhen(stopWhen: StopWhen, question: StopQuestion): Promise<boolean> {
  let returned: unknown
  try {
    returned = await stopWhen(question)
  } catch (error) {
    throw rememberThrown(createFailure(`threw: ${describeError(error)}.`), error)
  }
  if (typeof returned === 'boolean') return returned
  throw createFailure(`returned ${describeArgument(returned)}.`)
}

function createFailure(what: string): ModelActorError {
  return createActorError(
    'stop_when_failed',
    `stopWhen ${what} Fix it: it receives { results, step, context } and must return true or false.`,
  )
}
