import { createCallsFact, createResultsFact } from '../../../guards/facts.js'
import { extendObject } from '../../../guards/lib/extended.js'
import { collectFindings, isWatching, observeAll } from '../../../guards/state.js'
import type { Fact, Finding } from '../../../guards/types.js'
import { toAction } from '../update-action.js'
import type { EmittedEvent } from '../announcements.js'
import { toCallFact, toResultFact } from '../call-facts.js'
import type { AgentContext } from '../context.js'
import { getEventTime } from '../machine-events.js'
import type { BatchCall } from '../batch-calls.js'
import { capCalls } from './cap-calls.js'
import { applyFindings } from './apply-findings.js'
import { narrowCalls } from './narrow-calls.js'

/**
 * Active skills refuse calls of tools that they do not allow, the caps refuse calls that are too many, and the guards check the
 * calls, before any of them runs.
 */
export const judgeCalls = toAction((context, event, emit) => {
  const now = getEventTime(event)
  const narrowed = narrowCalls(context, now, emit)
  const allowed = narrowed ? { ...context, ...narrowed } : context
  const capped = capCalls(allowed, now, emit) ?? narrowed
  const { guardrails } = context.config
  if (!isWatching(guardrails)) return capped
  const calls = (capped ?? context).calls.map((call) =>
    call.unloaded ? call : extendObject(call, { fact: toCallFact(context.tools, call, guardrails) }),
  )
  // What only loads its tool costs no guard.
  const facts = calls.flatMap(({ fact, unloaded }) => (fact && !unloaded ? [fact] : []))
  if (facts.length === 0) return capped
  const fact = createCallsFact(facts, guardrails)
  const judged = observeFact({ ...context, calls }, fact, now, emit)
  return capped ? { ...capped, ...judged } : judged
})

/** The guards check the results of a batch. */
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

/** Gives the guards a fact and applies their findings. */
function observeFact(
  context: AgentContext,
  fact: Fact,
  now: number,
  emit: (announcement: EmittedEvent) => void,
): Pick<AgentContext, 'calls' | 'guardrails' | 'nudges' | 'verdict'> {
  const config = context.config.guardrails
  const guardrails = observeAll(context.guardrails, fact, config)
  const said = collectFindings(guardrails, config).map((finding) => ({
    ...finding,
    refuses: createRefusalTest(finding),
  }))
  return { guardrails, ...applyFindings(context, said, now, emit) }
}

/** Which calls a finding refuses, asked in the order of the calls. */
export function createRefusalTest(finding: Finding): (call: Pick<BatchCall, 'fact'>) => boolean {
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
