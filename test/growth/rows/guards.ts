import {
  createCallFact,
  createCallsFact,
  createResultFact,
  createResultsFact,
} from '../../../guards/facts.js'
import { collectFindings, getInitialGuardrails, observeAll } from '../../../guards/state.js'
import { rules } from '../../../guards/roster.js'
import type { Fact } from '../../../guards/types.js'
import { presets } from '../../../src/index.js'
import { compareGuards, replayGuards, replaySteps, type RecordedStep } from '../../../src/testing/index.js'
import { defaultConfig } from '../../../src/core/config/resolve-config.js'
import { enabledGuards } from '../../../src/core/config/defaults.js'
import { type Row, row } from '../measure.js'
import { transcript } from '../scripted.js'

const config = { ...enabledGuards, maxRepeatedToolSteps: 3, progress: defaultConfig.guardrails.progress }

const result = (at: number, content: string, ok: boolean) => {
  const call = createCallFact('look', JSON.stringify({ at }), { polling: false, readOnly: true }, config)
  const ending = {
    ok,
    errorKind: ok ? null : 'failed',
    refused: false,
    refusedBy: null,
    durationMs: 5,
    content,
  } as const
  return createResultFact(call, ending, config)
}

/** Batches of one call, each with new content. Some fail. */
const steps = (n: number): Fact[] =>
  Array.from({ length: n }, (_, i) => {
    const one = result(i, `Row ${i} says ${(i * 7_919) % 10_007}.`, i % 3 !== 0)
    return [createCallsFact([one], config), createResultsFact([one], config, i)]
  }).flat()

/** One batch of this many calls. */
const batch = (n: number): Fact[] => {
  const all = Array.from({ length: n }, (_, i) => result(i, `Row ${i} says ${(i * 7_919) % 10_007}.`, true))
  return [createCallsFact(all, config), createResultsFact(all, config, 0)]
}

const observed = (facts: readonly Fact[]): unknown =>
  facts.reduce((state, fact) => {
    const next = observeAll(state, fact, config)
    collectFindings(next, config)
    return next
  }, getInitialGuardrails())

const recorded = (n: number): RecordedStep[] =>
  Array.from({ length: n }, (_, i) => ({
    calls: [{ name: 'look', arguments: `{"at":${i}}`, result: `Seen ${i}.` }],
  }))

export const guardRows: readonly Row[] = [
  row({
    name: 'all guards over many steps',
    covers: rules.map(([key]) => `guard ${key}`),
    from: 200,
    atMost: 3_200,
    prepare: steps,
    run: observed,
  }),
  row({
    name: 'all guards over a batch of many calls',
    covers: [],
    from: 200,
    atMost: 3_200,
    prepare: batch,
    run: observed,
  }),
  row({
    name: 'the facts of a long result',
    covers: [],
    from: 10_000,
    prepare: (n) => 'at 12:30 id 4711 '.repeat(n / 17),
    run: (text) => result(1, text, true),
  }),
  row({
    name: 'replayGuards',
    covers: ['statewright/testing replayGuards'],
    from: 200,
    atMost: 3_200,
    prepare: transcript,
    run: (messages) => replayGuards(messages),
  }),
  row({
    name: 'compareGuards',
    covers: ['statewright/testing compareGuards'],
    from: 200,
    atMost: 3_200,
    prepare: transcript,
    run: (messages) => compareGuards(messages, presets),
  }),
  row({
    name: 'replaySteps',
    covers: ['statewright/testing replaySteps'],
    from: 200,
    atMost: 3_200,
    prepare: recorded,
    run: (list) => replaySteps(list),
  }),
]
