import { type GuardrailsConfig, noGuards } from '../../guards/roster.js'
import { createCallFact, createCallsFact, createResultFact, createResultsFact } from '../../guards/facts.js'
import {
  collectFindings,
  type GuardrailsState,
  getInitialGuardrails,
  observeAll,
} from '../../guards/state.js'
import type { CallFact, Fact, ResultFact } from '../../guards/types.js'
import { createRefusalTest } from '../../machines/agent/actions/judge-batch.js'
import { enabledGuards } from '../../src/core/config/defaults.js'
import { defaultConfig } from '../../src/core/config/resolve-config.js'

/** The guards with explicit rules, all enabled, without the progress guard. */
export const defaults: GuardrailsConfig = { ...enabledGuards, maxRepeatedToolSteps: 3, progress: null }

/** The defaults with only one guard enabled. */
export function only(...on: (keyof GuardrailsConfig)[]): GuardrailsConfig {
  return {
    ...noGuards,
    maxRepeatedToolSteps: 3,
    ...Object.fromEntries(on.map((name) => [name, defaults[name]])),
  }
}

type Ending = Partial<
  Pick<ResultFact, 'ok' | 'errorKind' | 'refused' | 'refusedBy' | 'child' | 'durationMs'>
> & { content?: string }

/** A call and its result. By default it is a successful read with a constant text. */
export interface Step extends Ending {
  name?: string
  args?: unknown
  polling?: boolean
  readOnly?: boolean
}

export function call({ name = 'read', args = {}, polling = false, readOnly = true }: Step): CallFact {
  return createCallFact(name, JSON.stringify(args), { polling, readOnly }, defaults)
}

export function result(step: Step, config: GuardrailsConfig = watching): ResultFact {
  const {
    ok = true,
    errorKind = null,
    refused = false,
    refusedBy = null,
    durationMs = 0,
    content = `the result of ${step.name ?? 'read'}`,
    child,
  } = step
  const ending = { ok, errorKind, refused, refusedBy, durationMs, content, ...(child && { child }) }
  return createResultFact(call(step), ending, config)
}

/** Every guard reads the results. */
const watching: GuardrailsConfig = { ...defaults, progress: defaultConfig.guardrails.progress }

export const fails = { ok: false, errorKind: 'failed', content: 'it broke' } as const
export const timesOut = { ok: false, errorKind: 'transient', content: 'timed out' } as const
export const isDenied = { ok: false, errorKind: 'policy_denied', content: 'not allowed' } as const
export const isUnknown = { ok: false, errorKind: 'unknown_tool', content: 'no such tool' } as const
export const isRefused = { ok: false, refused: true, content: 'refused' } as const

/** The decisions for a list of batches. */
export interface Played {
  /** The executed batches, and their calls. */
  executed: number
  calls: number
  /** `3: repeated_call nudge`: the batch number (from 1) and the message. `asked` means before the batch ran. */
  decisions: string[]
  messages: string[]
  evidence: string[]
  state: GuardrailsState
}

/** Plays batches like the machine: checks each in advance, rejects blocked calls, stops at a halt. */
export function play(batches: (Step | Step[] | 'text')[], config: GuardrailsConfig = defaults): Played {
  const played: Played = {
    executed: 0,
    calls: 0,
    decisions: [],
    messages: [],
    evidence: [],
    state: getInitialGuardrails(),
  }
  const tell = (fact: Fact, where: string) => {
    played.state = observeAll(played.state, fact, config)
    const all = collectFindings(played.state, config)
    for (const { guard, action, message, evidence } of all) {
      played.decisions.push(`${where}: ${guard} ${action}`)
      played.messages.push(message)
      played.evidence.push(evidence)
    }
    return all
  }
  for (const [index, batch] of batches.entries()) {
    if (batch === 'text') {
      tell({ type: 'text' }, `${index + 1}`)
      continue
    }
    const steps = Array.isArray(batch) ? batch : [batch]
    const before = tell(createCallsFact(steps.map(call), config), `${index + 1} asked`)
    if (before.some(({ action }) => action === 'halt')) break
    const refusals = before.map((finding) => ({ finding, isRefused: createRefusalTest(finding) }))
    const results = steps.map((step) => {
      const refusal = refusals.find((one) => one.isRefused({ fact: call(step) }))
      if (!refusal) return result(step)
      const refusedBy = refusal.finding.guard === 'no_progress' ? ('progress' as const) : ('other' as const)
      return result({ ...step, ...isRefused, refusedBy })
    })
    played.calls += results.filter((one) => !one.refused).length
    if (results.some((one) => !one.refused)) played.executed += 1
    if (
      tell(createResultsFact(results, config, index), `${index + 1}`).some(({ action }) => action === 'halt')
    )
      break
  }
  return played
}

export function repeat<Item>(times: number, ...items: Item[]): Item[] {
  return Array.from({ length: times }, () => items).flat()
}
