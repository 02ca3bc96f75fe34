import { callFact, callsFact, resultsFact } from '../../../guards/facts.js'
import { digest } from '../../../guards/fingerprint.js'
import { findings, isWatching, observeAll } from '../../../guards/state.js'
import type { CallFact, Fact, ResultFact } from '../../../guards/types.js'
import { act } from '../act.js'
import type { Announcement } from '../announcements.js'
import type { AgentContext } from '../context.js'
import { timeOf } from '../events.js'
import type { PendingCall, ToolResult, ToolTraits } from '../results.js'
import { settleCall } from './transcript.js'

/** The guards look at the calls before any of them runs. */
export const judgeCalls = act((context, event, tell) => {
  if (!isWatching(context.config.guardrails)) return undefined
  const calls = context.calls.map((call) => ({ ...call, fact: factOf(context, call) }))
  const fact = callsFact(calls.map((call) => call.fact))
  return judge({ ...context, calls }, fact, timeOf(event), tell)
})

/** The guards look at the results of a batch. */
export const judgeResults = act((context, event, tell) => {
  const lastBatchFailed = context.calls.some((call) => call.result && call.result.status !== 'ok')
  if (!isWatching(context.config.guardrails)) return { lastBatchFailed }
  const results = context.calls.flatMap((call) =>
    call.result ? [resultFact(context, call, call.result)] : [],
  )
  return { lastBatchFailed, ...judge(context, resultsFact(results), timeOf(event), tell) }
})

/**
 * Tells the guards a fact and acts on what they find: a halt stands until the chart has led it somewhere, a block
 * refuses calls, a nudge rides on the next request.
 */
function judge(
  context: AgentContext,
  fact: Fact,
  now: number,
  tell: (announcement: Announcement) => void,
): Pick<AgentContext, 'calls' | 'guardrails' | 'nudges' | 'verdict'> {
  const config = context.config.guardrails
  const guardrails = observeAll(context.guardrails, fact, config)
  let { calls } = context
  const nudges: string[] = []
  let verdict: AgentContext['verdict'] = null
  for (const finding of findings(guardrails, config)) {
    const { guard, action, evidence, message, onHalt } = finding
    if (finding.action === 'halt') verdict ??= { guard, evidence, message, onHalt }
    else tell({ type: 'guardrail', guard, action, evidence, message })
    if (finding.action === 'nudge') nudges.push(message)
    if (finding.action === 'block') calls = refuse(calls, finding.fingerprints, message, now, tell)
  }
  return { calls, guardrails, nudges, verdict }
}

function refuse(
  calls: PendingCall[],
  fingerprints: readonly string[] | null,
  message: string,
  now: number,
  tell: (announcement: Announcement) => void,
): PendingCall[] {
  const result: ToolResult = { status: 'blocked', content: message, durationMs: 0 }
  return calls
    .filter((call) => fingerprints === null || (call.fact && fingerprints.includes(call.fact.fingerprint)))
    .reduce((all, call) => settleCall(all, call.id, result, now, tell), calls)
}

function factOf(context: AgentContext, call: PendingCall): CallFact {
  return callFact(call.name, call.arguments, traitsOf(context, call.name))
}

const noTraits: ToolTraits = { readOnly: false, idempotent: false, polling: false }

function traitsOf(context: AgentContext, name: string): ToolTraits {
  return Object.hasOwn(context.tools, name) ? (context.tools[name] ?? noTraits) : noTraits
}

function resultFact(context: AgentContext, call: PendingCall, result: ToolResult): ResultFact {
  return {
    ...(call.fact ?? factOf(context, call)),
    ok: result.status === 'ok',
    errorKind: errorKindOf(result),
    refused: refusals.has(result.status),
    digest: digest(result.content),
    ...(result.child && { child: result.child }),
  }
}

const refusals: ReadonlySet<string> = new Set(['rejected', 'blocked', 'not_executed', 'interrupted'])

function errorKindOf({ status, errorKind }: ToolResult): ResultFact['errorKind'] {
  switch (status) {
    case 'timeout':
      return 'transient'
    case 'denied':
      return 'policy_denied'
    case 'unknown_tool':
      return 'unknown_tool'
    case 'error':
      return errorKind ?? 'failed'
    case 'invalid_arguments':
      return 'failed'
    default:
      return null
  }
}
