import * as fc from 'fast-check'
import type { GuardrailsConfig } from '../../guards/roster.js'
import { createCallsFact, createResultsFact } from '../../guards/facts.js'
import {
  forgetDroppedMessages,
  collectFindings,
  type GuardrailsState,
  getInitialGuardrails,
  startTurn,
  observeAll,
  resetGuard,
  restoreGuardrails,
} from '../../guards/state.js'
import type { Fact, ResultFact } from '../../guards/types.js'
import { defaultConfig } from '../../src/core/config/resolve-config.js'
import { call, defaults, fails, isDenied, only, play, repeat, type Step } from './facts.js'
import { longTest } from '../support/extent.js'

const { progress } = defaultConfig.guardrails

const blocking: GuardrailsConfig = {
  ...defaults,
  progress,
  repeatedCall: { haltAt: 'next', counts: 'all', onRepeat: 'block', onHalt: 'pause' },
  failing: defaults.failing && { ...defaults.failing, onRepeat: 'block' },
}

/** Facts from a small value space, so that repetition is common. */
const step: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom('read', 'write', '__proto__', ''),
  args: fc.constantFrom<unknown>({}, { a: 1 }, '"', null),
  polling: fc.boolean(),
  readOnly: fc.boolean(),
})
const resultOf = fc
  .record({
    step,
    ok: fc.boolean(),
    errorKind: fc.constantFrom<ResultFact['errorKind']>(
      null,
      'failed',
      'transient',
      'policy_denied',
      'unknown_tool',
    ),
    refused: fc.boolean(),
    refusedBy: fc.constantFrom<ResultFact['refusedBy']>(null, 'progress', 'other'),
    durationMs: fc.constantFrom(0, 5_000),
    digest: fc.constantFrom('x', 'y'),
    code: fc.constantFrom('provider_quota', 'other', null),
  })
  .map(
    ({ step: one, code, ...ending }): ResultFact => ({
      ...call(one),
      ...ending,
      outcome: ending.digest,
      shape: ending.digest,
      says: null,
      size: 1,
      child: { state: 'ERROR', code, message: 'sorry' },
    }),
  )
const fact: fc.Arbitrary<Fact> = fc.oneof(
  fc.constant<Fact>({ type: 'text' }),
  fc.array(step, { maxLength: 3 }).map((steps) => createCallsFact(steps.map(call), blocking)),
  fc.array(resultOf, { maxLength: 3 }).map((results) => createResultsFact(results, blocking)),
)

function after(facts: readonly Fact[], config: GuardrailsConfig): GuardrailsState {
  return facts.reduce((state, one) => observeAll(state, one, config), getInitialGuardrails())
}

describe('for any facts', () => {
  test.each([
    ['halting', defaults],
    ['blocking', blocking],
    ['default', { ...only(), progress }],
  ])('%s guards never throw, and their state is JSON that can be restored', (_, config) => {
    fc.assert(
      fc.property(fc.array(fact, { maxLength: 30 }), (facts) => {
        let state = getInitialGuardrails()
        for (const one of facts) {
          state = observeAll(state, one, config)
          const stored: unknown = JSON.parse(JSON.stringify(state))
          expect(stored).toEqual(state)
          expect(restoreGuardrails(stored)).toEqual({ state })
          for (const finding of collectFindings(state, config)) {
            expect(finding.evidence.length).toBeLessThanOrEqual(600)
            expect(finding.message).not.toBe('')
          }
        }
      }),
    )
  })

  test('observing changes no state object that was returned', () => {
    fc.assert(
      fc.property(fc.array(fact, { maxLength: 15 }), fact, (facts, next) => {
        const state = after(facts, blocking)
        const before = JSON.stringify(state)
        observeAll(state, next, blocking)
        expect(JSON.stringify(state)).toBe(before)
      }),
    )
  })

  test('a nudge is sent once, and not again after the next request', () => {
    const { state } = play(repeat(3, { name: 'read' }), only('repeatedCall'))
    const next = observeAll(state, createCallsFact([call({ name: 'write' })], defaults), only('repeatedCall'))
    expect(collectFindings(state, only('repeatedCall'))).toHaveLength(1)
    expect(collectFindings(next, only('repeatedCall'))).toEqual([])
  })
})

longTest('all state stays under 8 KB after 10,000 facts of the largest kind', () => {
  const wide: GuardrailsConfig = {
    ...blocking,
    cycle: { maxPeriod: 1e6, nudgeAt: 2, haltAt: 1e9, onHalt: 'error' },
  }
  const nasty = '"\\\u0000\ud800😀字'.repeat(100)
  let state = getInitialGuardrails()
  let largest = 0
  // Each round has two facts, the calls and their results.
  for (let index = 0; index < 5_000; index += 1) {
    const kind = (['failed', 'transient', 'policy_denied', 'unknown_tool', null] as const)[index % 5] ?? null
    const results = Array.from(
      { length: 4 },
      (_, at): ResultFact => ({
        ...call({ name: `${at}${nasty}`, args: { text: nasty, index: Math.floor(index / 40) * 4 + at } }),
        ok: kind === null && index % 3 === 0,
        errorKind: kind,
        refused: false,
        refusedBy: null,
        digest: 'same'.repeat(16),
        outcome: 'same'.repeat(4).slice(2),
        shape: 'same1',
        says: null,
        size: 1,
        durationMs: 0,
        child: { state: 'ERROR', code: 'provider_quota', message: nasty },
      }),
    )
    for (const one of [createCallsFact(results, wide), createResultsFact(results, wide)])
      state = observeAll(state, one, wide)
    largest = Math.max(largest, new TextEncoder().encode(JSON.stringify(state)).length)
  }
  expect(largest).toBeGreaterThan(2000)
  expect(largest).toBeLessThan(8192)
})

describe('restoring', () => {
  test('starts a new session fresh, without a note', () => {
    for (const nothing of [undefined, null])
      expect(restoreGuardrails(nothing)).toEqual({ state: getInitialGuardrails() })
  })

  test('loads an older version, whose missing guards start fresh', () => {
    const { state } = play(repeat(2, { name: 'read' }))
    const { repeatedOutput: _, version: __, ...older } = state
    expect(restoreGuardrails({ ...older, version: 0 })).toEqual({
      state: { ...state, repeatedOutput: getInitialGuardrails().repeatedOutput },
    })
  })

  test('refuses a newer version with a sentence', () => {
    expect(restoreGuardrails({ ...getInitialGuardrails(), version: 2 })).toEqual({
      error: expect.stringContaining('has version 2'),
    })
  })

  test('resets damaged parts with a note, and keeps the rest', () => {
    const { state } = play([{ name: 'read', ...fails }])
    expect(restoreGuardrails({ ...state, cycle: { rounds: 'many' } })).toEqual({
      state: { ...state, cycle: getInitialGuardrails().cycle },
      note: expect.stringContaining('cycle'),
    })
    expect(restoreGuardrails('garbage')).toEqual({
      state: getInitialGuardrails(),
      note: expect.any(String),
    })
  })

  test('accepts any input, and returns a working state', () => {
    const damage = fc.record(
      Object.fromEntries(Object.keys(getInitialGuardrails()).map((name) => [name, fc.anything()])),
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(fc.anything(), damage), fact, (stored, next) => {
        const restored = restoreGuardrails(stored)
        if ('error' in restored) return
        collectFindings(observeAll(restored.state, next, defaults), defaults)
      }),
    )
  })

  test('restores a run that halts where the uninterrupted one does', () => {
    const { state } = play(repeat(3, { name: 'read' }))
    const restored = restoreGuardrails(JSON.parse(JSON.stringify(state)))
    if ('error' in restored) throw new Error(restored.error)
    const next = observeAll(restored.state, createCallsFact([call({ name: 'read' })], defaults), defaults)
    expect(collectFindings(next, defaults).map(({ action }) => action)).toEqual(['halt'])
  })
})

describe('resetting', () => {
  const denied: Step = { name: 'write', ...isDenied }

  test('one guard does not change the others', () => {
    const { state } = play([{ name: 'read' }, { name: 'read' }, denied])
    expect(state.failing.identical).toHaveLength(1)
    const reset = resetGuard(state, 'policy_denied')
    expect(reset.failing).toEqual(getInitialGuardrails().failing)
    expect({ ...reset, failing: state.failing }).toEqual(state)
  })

  test.each([
    ['repeated_call', 'repeatedCall'],
    ['repeated_output', 'repeatedOutput'],
    ['cycle', 'cycle'],
    ['repeated_failure', 'failing'],
    ['terminal_delegation', 'terminalDelegation'],
  ] as const)('%s resets its own state', (reason, name) => {
    const child = { state: 'ERROR', code: 'provider_quota', message: '' }
    const { state } = play([{ name: 'read' }, [{ name: 'read' }, { ...denied, child }]])
    const other = play([{ name: 'read' }]).state
    const used = { ...state, repeatedCall: other.repeatedCall, repeatedOutput: other.repeatedOutput }
    expect(used[name]).not.toEqual(getInitialGuardrails()[name])
    expect(resetGuard(used, reason)).toEqual({ ...used, [name]: getInitialGuardrails()[name] })
  })

  test('an unknown name changes nothing', () => {
    const { state } = play([denied])
    expect(resetGuard(state, 'user_guard')).toBe(state)
  })

  test('every streak after a new user message', () => {
    const { state } = play([denied, { name: 'read' }])
    expect(startTurn(state)).toEqual(getInitialGuardrails())
  })
})

test('findings include the action of their guard on a halt, the most severe first', () => {
  const config: GuardrailsConfig = {
    ...defaults,
    cycle: { maxPeriod: 4, nudgeAt: 2, haltAt: 9, onHalt: 'error' },
    failing: defaults.failing && { ...defaults.failing, any: 4, onHalt: 'pause' },
  }
  const { state } = play(repeat(2, { name: 'a', ...fails }, { name: 'b', ...fails }), config)
  expect(collectFindings(state, config).map(({ guard, action, onHalt }) => [guard, action, onHalt])).toEqual([
    ['repeated_failure', 'halt', 'pause'],
    ['cycle', 'nudge', 'error'],
  ])
})

describe('the progress guard next to the others', () => {
  test('leaves failures to the failing guard if that is on', () => {
    const config: GuardrailsConfig = { ...only('failing'), progress }
    const { state } = play(repeat(2, { name: 'read', ...fails }), config)
    expect(state.progress).toEqual({ ...getInitialGuardrails().progress })
  })

  test('forgets exactly the calls that requests omit', () => {
    const { state } = play(
      [1, 2, 3].map((n) => ({ name: 'read', args: { n } })),
      { ...only(), progress },
    )
    const after = forgetDroppedMessages(state, 1, 2)
    expect(after.progress.pairs).toEqual([state.progress.pairs[0], state.progress.pairs[2]])
    expect(forgetDroppedMessages(state, 3, 9)).toBe(state)
  })

  test('is reset only by its own halt reason', () => {
    const { state } = play(repeat(3, { name: 'read' }), { ...defaults, progress })
    expect(resetGuard(state, 'no_progress')).toEqual({ ...state, progress: getInitialGuardrails().progress })
    expect(resetGuard(state, 'repeated_call').progress).toBe(state.progress)
  })
})
