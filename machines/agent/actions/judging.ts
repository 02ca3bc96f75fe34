import { callsFact, resultsFact } from '../../../guards/facts.js'
import { extended } from '../../../guards/lib/extended.js'
import { findings, isWatching, observeAll } from '../../../guards/state.js'
import type { Fact, Finding } from '../../../guards/types.js'
import { act } from '../act.js'
import type { EmittedEvent } from '../announcements.js'
import { callFactOf, resultFactOf } from '../call-facts.js'
import type { AgentContext } from '../context.js'
import { timeOf } from '../events.js'
import type { BatchCall } from '../results.js'
import { heed } from './heeding.js'

/** The guards look at the calls before any of them runs. */
export const judgeCalls = act((context, event, tell) => {
  const { guardrails } = context.config
  if (!isWatching(guardrails)) return undefined
  const calls = context.calls.map((call) => extended(call, { fact: callFactOf(context.tools, call) }))
  const fact = callsFact(
    calls.map((call) => call.fact),
    guardrails,
  )
  return judge({ ...context, calls }, fact, timeOf(event), tell)
})

/** The guards look at the results of a batch. */
export const judgeResults = act((context, event, tell) => {
  const lastBatchFailed = context.calls.some((call) => call.result && call.result.status !== 'ok')
  const { guardrails } = context.config
  if (!isWatching(guardrails)) return { lastBatchFailed }
  const results = context.calls.flatMap((call) =>
    call.result ? [resultFactOf(context.tools, call, call.result, guardrails)] : [],
  )
  const fact = resultsFact(results, guardrails, context.batchAt)
  return { lastBatchFailed, ...judge(context, fact, timeOf(event), tell) }
})

/** Tells the guards a fact and heeds what they find. */
function judge(
  context: AgentContext,
  fact: Fact,
  now: number,
  tell: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls' | 'guardrails' | 'nudges' | 'verdict'> {
  const config = context.config.guardrails
  const guardrails = observeAll(context.guardrails, fact, config)
  const said = findings(guardrails, config).map((finding) => ({
    ...finding,
    refuses: refusing(finding),
  }))
  return { guardrails, ...heed(context, said, now, tell) }
}

/** Which calls a finding refuses, asked in the order of the calls. */
export function refusing(finding: Finding): (call: Pick<BatchCall, 'fact'>) => boolean {
  if (finding.action !== 'block') return () => false
  const { fingerprints, spare = 0 } = finding
  const spared = new Map<string, number>()
  return ({ fact }) => {
    if (fact === undefined) return fingerprints === null
    if (fingerprints && !fingerprints.includes(fact.fingerprint) && !fingerprints.includes(fact.key))
      return false
    const before = spared.get(fact.key) ?? 0
    spared.set(fact.key, before + 1)
    return before >= spare
  }
}
