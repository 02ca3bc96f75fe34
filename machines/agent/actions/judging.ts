import { callFact, callsFact, resultsFact } from '../../../guards/facts.js'
import { digest } from '../../../guards/fingerprint.js'
import { findings, isWatching, observeAll } from '../../../guards/state.js'
import type { CallFact, Fact, Finding, ResultFact } from '../../../guards/types.js'
import { act } from '../act.js'
import type { Announcement } from '../announcements.js'
import type { AgentContext } from '../context.js'
import { timeOf } from '../events.js'
import type { PendingCall, ToolResult, ToolTraits } from '../results.js'
import { withheldArguments, withheldName } from '../screening.js'
import { heed } from './heeding.js'

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

/** Tells the guards a fact and heeds what they find. */
function judge(
  context: AgentContext,
  fact: Fact,
  now: number,
  tell: (announcement: Announcement) => void,
): Pick<AgentContext, 'calls' | 'guardrails' | 'nudges' | 'verdict'> {
  const config = context.config.guardrails
  const guardrails = observeAll(context.guardrails, fact, config)
  const said = findings(guardrails, config).map((finding) => ({
    ...finding,
    refuses: (call: PendingCall) => isRefused(call, finding),
  }))
  return { guardrails, ...heed(context, said, now, tell) }
}

function isRefused({ fact }: PendingCall, finding: Finding): boolean {
  if (finding.action !== 'block') return false
  const { fingerprints } = finding
  return fingerprints === null || (fact !== undefined && fingerprints.includes(fact.fingerprint))
}

/** What guards say of a call shows its arguments, but for those that no shield has seen. */
function factOf(context: AgentContext, call: PendingCall): CallFact {
  const fact = callFact(call.name, call.arguments, traitsOf(context, call.name))
  if (!call.unchecked) return fact
  const isKnown = Object.hasOwn(context.tools, call.name)
  return { ...fact, name: isKnown ? call.name : withheldName, shown: withheldArguments }
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
