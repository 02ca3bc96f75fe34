import { createCallsFact, createResultsFact } from '../../../guards/facts.js'
import { extendObject, omitUndefined } from '../../../guards/lib/json.js'
import { collectFindings, isWatching, observeAll, resetGuard } from '../../../guards/state.js'
import type { Fact, Finding } from '../../../guards/types.js'
import { toAction, toActionOn } from '../update-action.js'
import type { Emit } from '../announcements.js'
import { createDenial, isDenied } from '../approvals.js'
import { toCallFact, toResultFact } from '../call-facts.js'
import { type AgentContext, type GuardrailVerdict, patchContext, getEventTime } from '../context.js'
import { type BatchCall, type ToolResult, toResult } from '../batch-calls.js'
import type { ActiveSkill } from '../skills.js'
import { closeCall, closeOpenCalls, withInternalMessage } from './update-transcript.js'
import {
  type CallCap,
  type CallCaps,
  countCalls,
  formatCapMessage,
  noCallCounts,
} from '../../../guards/call-caps.js'
import type { Reason } from '../run-result.js'

type CallsPatch = Pick<AgentContext, 'calls'> & Partial<Pick<AgentContext, 'callCounts'>>

/** Skills refuse disallowed tools, caps refuse excess calls, and guards check the remaining calls. */
export const judgeCalls = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const checked = [denyCalls, narrowCalls, capCalls].reduce((before, check) => {
    const patch = check(before, now, emit)
    return patch ? patchContext(before, patch) : before
  }, context)
  const { callCounts } = checked
  const { guardrails } = context.config
  if (!isWatching(guardrails)) return { callCounts, calls: checked.calls }
  const calls = checked.calls.map((call) =>
    call.unloaded ? call : extendObject(call, { fact: toCallFact(context.tools, call, guardrails) }),
  )
  // Guards ignore calls that only load a tool.
  const facts = calls.flatMap(({ fact, unloaded }) => (fact && !unloaded ? [fact] : []))
  if (facts.length === 0) return { callCounts, calls: checked.calls }
  const fact = createCallsFact(facts, guardrails)
  return { callCounts, ...observeFact({ ...context, calls }, fact, now, emit) }
})

export const judgeResults = toAction((context, event, emit) => {
  const lastBatchFailed = context.calls.some(
    (call) => !call.unloaded && call.result && call.result.status !== 'ok',
  )
  const { guardrails } = context.config
  if (!isWatching(guardrails)) return { lastBatchFailed }
  const results = context.calls.flatMap((call) =>
    call.result && !call.unloaded ? [toResultFact(context.tools, call, call.result, guardrails)] : [],
  )
  if (results.length === 0) return { lastBatchFailed }
  const fact = createResultsFact(results, guardrails, context.batchAt)
  return { lastBatchFailed, ...observeFact(context, fact, getEventTime(event), emit) }
})

function observeFact(context: AgentContext, fact: Fact, now: number, emit: Emit) {
  const config = context.config.guardrails
  const guardrails = observeAll(context.guardrails, fact, config)
  const findings = collectFindings(guardrails, config)
  const applied = findings.map((finding) => ({ ...finding, refuses: createRefusalTest(finding) }))
  return { guardrails, ...applyFindings(context, applied, now, emit) }
}

/** Returns a predicate for the calls that a finding refuses. The predicate is stateful, so pass the calls in order. */
export function createRefusalTest(finding: Finding): (call: Pick<BatchCall, 'fact'>) => boolean {
  if (finding.action !== 'block') return () => false
  const { fingerprints, spare = 0 } = finding
  const spared = new Map<string, number>()
  return ({ fact }) => {
    if (fact === undefined) return fingerprints === undefined
    if (fingerprints && !fingerprints.includes(fact.fingerprint) && !fingerprints.includes(fact.key))
      return false
    const before = spared.get(fact.key) ?? 0
    spared.set(fact.key, before + 1)
    return before >= spare
  }
}

function denyCalls(context: AgentContext, now: number, emit: Emit): CallsPatch | undefined {
  if (context.calls.every(({ decisions }) => decisions === undefined)) return undefined
  for (const call of context.calls) announceDecisions(call, emit)
  const deny = (call: BatchCall): BatchCall =>
    isDenied(call) ? closeCall(call, createDenial(call), now, emit) : call
  return { calls: context.calls.map(deny) }
}

/** Reasons can repeat arguments, so they are omitted until shields have cleared the arguments. */
export function announceDecisions(call: BatchCall, emit: Emit): void {
  for (const { reason, failed: _failed, ...verdict } of call.decisions ?? []) {
    const why = reason !== undefined && !call.unscreenedArguments && { reason }
    emit({ type: 'policy_decided', callId: call.id, name: call.name, ...verdict, ...why })
  }
}

/** Also refuses all handoffs except the first. */
function narrowCalls(context: AgentContext, now: number, emit: Emit): CallsPatch | undefined {
  const planned = context.plan?.step === context.steps ? context.plan.tools : undefined
  const handoff = findFirstHandoff(context)
  if (context.skills.length === 0 && planned === undefined && handoff === undefined) return undefined
  const refuse = (call: BatchCall): BatchCall => {
    if (call.result !== undefined) return call
    if (handoff && call !== handoff && isHandoff(context, call)) return closeCall(call, handedOver, now, emit)
    if (planned?.includes(call.name) === false) return closeCall(call, leftOut, now, emit)
    const skill = findForbiddingSkill(context, call.name)
    return skill ? closeCall(call, createRefusal(context, skill), now, emit) : call
  }
  const calls = context.calls.map(refuse)
  return calls.every((call, i) => call === context.calls[i]) ? undefined : { calls }
}

const leftOut = toResult('blocked', 'Not executed: this step may not call this tool.')

function findFirstHandoff(context: AgentContext): BatchCall | undefined {
  if (context.calls.length < 2) return undefined
  const [first, second] = context.calls.filter((call) => !call.result && isHandoff(context, call))
  return second && first
}

function isHandoff({ tools }: AgentContext, { name }: BatchCall): boolean {
  return Object.hasOwn(tools, name) && tools[name]?.handoff === true
}

const handedOver = toResult(
  'blocked',
  'Not executed: an earlier call of this answer already hands the conversation over, and each answer can do so only once.',
)

function findForbiddingSkill({ skills, tools }: AgentContext, name: string): ActiveSkill | undefined {
  if (Object.hasOwn(tools, name) && tools[name]?.skill) return undefined
  return skills.find(({ allowedTools }) => allowedTools !== undefined && !allowedTools.includes(name))
}

function createRefusal({ tools }: AgentContext, { name, allowedTools = [] }: ActiveSkill): ToolResult {
  const allowed = allowedTools.length === 0 ? 'no tools' : `only ${allowedTools.join(', ')}`
  // The agent that continues a session may have no skills.
  const way = Object.hasOwn(tools, 'unload_skill') ? ' Or unload the skill with unload_skill.' : ''
  return toResult('blocked', `Not executed: the skill '${name}' is loaded, and allows ${allowed}.${way}`)
}

const reasonByCap: Record<CallCap, Reason> = {
  run: 'max_tool_calls',
  response: 'max_tool_calls_per_response',
  tool: 'max_calls',
}

function capCalls(context: AgentContext, now: number, emit: Emit): CallsPatch | undefined {
  const caps = findCaps(context)
  if (caps === null) return undefined
  // Refused calls and calls that only load a tool do not count.
  const counted = context.calls.filter(({ result, unloaded }) => result === undefined && !unloaded)
  const { counts, met } = countCalls(
    context.callCounts ?? noCallCounts,
    counted.map(({ name }) => name),
    caps,
  )
  const capByCall = new Map(counted.map((call, i) => [call, met[i]]))
  const calls = context.calls.map((call) => {
    const cap = capByCall.get(call)
    if (!cap) return call
    const most = (cap === 'tool' ? caps.tool(call.name) : caps[cap]) ?? 0
    const result = toResult('blocked', formatCapMessage(cap, call.name, most))
    return closeCall(call, { ...result, refusedBy: reasonByCap[cap] }, now, emit)
  })
  return { calls, callCounts: counts }
}

function findCaps({ config, tools, calls }: AgentContext): CallCaps | null {
  // Logs from early versions lack these keys.
  const { maxToolCalls: run = null, maxToolCallsPerResponse: response = null } = config.limits as Partial<
    AgentContext['config']['limits']
  >
  const tool = (name: string): number | null =>
    Object.hasOwn(tools, name) ? (tools[name]?.maxCalls ?? null) : null
  const isCapped = run !== null || response !== null || calls.some(({ name }) => tool(name) !== null)
  return isCapped ? { run, response, tool } : null
}

const judged = ['xstate.done.actor.callGuards', 'xstate.done.actor.resultGuards'] as const

export const applyUserGuards = toActionOn(judged, (context, event, emit) => {
  const { states, findings, warnings } = event.output
  for (const message of warnings) emit({ type: 'warning', code: 'guard_failed', message })
  const applied = findings.map(({ guard: userGuard, callIds, ...finding }) => ({
    ...finding,
    guard: 'user_guard' as const,
    userGuard,
    refuses: ({ id }: { id: string }) => callIds === null || callIds.includes(id),
  }))
  return {
    guardrails: { ...context.guardrails, user: { ...context.guardrails.user, ...states } },
    ...applyFindings(context, applied, getEventTime(event), emit),
  }
})

interface AppliedFinding extends GuardrailVerdict {
  action: 'nudge' | 'block' | 'halt'
  refuses: (call: BatchCall) => boolean
}

function applyFindings(
  context: AgentContext,
  findings: readonly AppliedFinding[],
  now: number,
  emit: Emit,
): Pick<AgentContext, 'calls' | 'nudges' | 'verdict'> {
  let { calls } = context
  const nudges = [...context.nudges]
  let verdict: AgentContext['verdict'] = null
  for (const { action, refuses, ...finding } of findings) {
    const { guard, rule, evidence, message } = finding
    if (action === 'halt') verdict ??= finding
    else emit({ type: 'guardrail', guard, action, ...omitUndefined({ rule }), evidence, message })
    if (action === 'nudge') nudges.push(message)
    if (action !== 'block') continue
    const result = { ...toResult('blocked', message), refusedBy: guard }
    // A single pass, because a batch can have thousands of calls.
    calls = calls.map((call) =>
      call.result === undefined && !call.unloaded && refuses(call)
        ? closeCall(call, result, now, emit)
        : call,
    )
  }
  return { calls, nudges, verdict }
}

export const announceHalt = toAction((context, event, emit) => {
  const { verdict } = context
  if (verdict === null) return undefined
  const { guard, rule, evidence, message, lastWords } = verdict
  emit({ type: 'guardrail', guard, action: 'halt', ...omitUndefined({ rule }), evidence, message })
  return {
    reason: guard,
    ...(lastWords !== undefined && { nudges: [lastWords] }),
    error: { code: guard, message, recoverable: verdict.onHalt === 'pause' },
    calls: closeOpenCalls(
      context.calls,
      `Not executed: a guardrail stopped the run (${guard}).`,
      getEventTime(event),
      emit,
    ),
  }
})

/** Some providers reject a request that ends with an assistant message, so an internal message follows it. */
export const forgetHalt = toAction((context, event) => {
  const { verdict } = context
  if (verdict === null) return { error: null, pausing: false }
  const why =
    verdict.guard === 'terminal_delegation'
      ? 'a sub-agent could not run. It may be able to now.'
      : 'it made no progress. Try another way.'
  const asksOn = event.type === 'RESUME' && context.messages.at(-1)?.role === 'assistant'
  return {
    verdict: null,
    error: null,
    pausing: false,
    nudges: [],
    guardrails: resetGuard(context.guardrails, verdict.guard, verdict.userGuard),
    ...(asksOn &&
      withInternalMessage(
        context,
        `Continue with the task. You were stopped because ${why}`,
        'resumed',
        getEventTime(event),
      )),
  }
})
