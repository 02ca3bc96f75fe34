import { jest } from '@jest/globals'
import fc from 'fast-check'
import { type AgentConfigInput, createAgent, presets } from '../../../src/index.js'
import { findUnreachableSettings } from '../../../src/core/config/unreachable-settings.js'
import { resolveConfig } from '../../../src/core/config/resolve-config.js'
import { ManualModel } from '../../support/manual-model.js'
import { until } from '../../support/play.js'
import { sampled } from '../../support/extent.js'
import { guardKnobs } from './knobs/guard-knobs.js'
import { withSetting } from './knobs/knob.js'
import { playScene } from './knobs/play-scene.js'
import { progressKnobs } from './knobs/progress-knobs.js'
import { runKnobs } from './knobs/run-knobs.js'

const find = (input: AgentConfigInput): string[] =>
  findUnreachableSettings(input, resolveConfig(input)).map(({ sentence }) => sentence)

describe('a setting that other settings make ineffective', () => {
  test.each<[AgentConfigInput, string]>([
    [
      { limits: { maxSteps: 10 }, guardrails: { failing: { transientAny: 12 } } },
      'guardrails.failing.transientAny (12) has no effect: limits.maxSteps (10) ends the run first.',
    ],
    [
      { limits: { maxSteps: 5 }, guardrails: { progress: { failing: { haltAt: 6, nudgeAt: 5 } } } },
      'guardrails.progress.failing.haltAt (6) has no effect: limits.maxSteps (5) ends the run first.',
    ],
    [
      { guardrails: { progress: { failing: { haltAt: 6, nudgeAt: 6 } } } },
      'guardrails.progress.failing.nudgeAt (6) has no effect: the run stops at guardrails.progress.failing.haltAt (6).',
    ],
    [
      { limits: { tokenBudget: 500 }, guardrails: { reserveTokens: 600 } },
      'guardrails.reserveTokens (600) has no effect: it equals or exceeds limits.tokenBudget (500), so the budget is almost exhausted from the start.',
    ],
    [
      { limits: { onNearBudget: 'conclude' } },
      "limits.onNearBudget ('conclude') has no effect: neither limits.tokenBudget nor limits.costLimit is set with a reserve.",
    ],
    [
      { limits: { onNearBudget: 'conclude', tokenBudget: 500 } },
      'limits.tokenBudget (500) has no effect: guardrails.reserveTokens (512) equals or exceeds it, so the first request is the last (limits.onNearBudget).',
    ],
    [
      { guardrails: { reserveCostFraction: 1 } },
      'guardrails.reserveCostFraction (1) has no effect: it equals or exceeds limits.costLimit, so the budget is almost exhausted from the start.',
    ],
    [
      { limits: { tokenBudget: 500, outputTokens: 500 } },
      'limits.outputTokens (500) has no effect: limits.tokenBudget (500) also counts them and is reached first.',
    ],
    [
      { limits: { timeoutMs: 1000 }, toolCalls: { timeoutMs: 1000 } },
      'toolCalls.timeoutMs (1000) has no effect: limits.timeoutMs (1000) ends the run first.',
    ],
    [
      { contentIdleMs: 1000, streamIdleMs: 1001 },
      'streamIdleMs (1001) has no effect: contentIdleMs (1000) ends the response first.',
    ],
    [
      { retry: { baseDelayMs: 2000, maxDelayMs: 1000 } },
      'retry.baseDelayMs (2000) has no effect: retry.maxDelayMs (1000) is less, so every wait takes that long.',
    ],
    [
      { limits: { maxSteps: 2 }, completion: { maxOutputRepairs: 2 } },
      'completion.maxOutputRepairs (2) has no effect: limits.maxSteps (2) ends the run first.',
    ],
  ])('is named: %j', (input, sentence) => {
    expect(find(input)).toEqual([sentence])
  })

  test('does not exist among the defaults or the presets, with any limits', () => {
    const limits = fc.record(
      {
        maxSteps: fc.constantFrom(1, 2, 5, 20, null),
        timeoutMs: fc.constantFrom(0, 1, 1000, 3_600_000),
        tokenBudget: fc.constantFrom(0, 1, 100, 100_000),
      },
      { requiredKeys: [] },
    )
    const bases: AgentConfigInput[] = [{}, ...Object.values(presets)]
    for (const preset of Object.keys(presets) as (keyof typeof presets)[]) bases.push({ preset })
    fc.assert(
      fc.property(limits, fc.constantFrom(...bases), (chosen, base) => {
        expect(find({ ...base, limits: { ...base.limits, ...chosen } })).toEqual([])
      }),
      { numRuns: sampled(200) },
    )
  })

  test('causes one process warning when the agent is created', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const create = (any: number) =>
      createAgent({ model: new ManualModel(), limits: { maxSteps: 7 }, guardrails: { failing: { any } } })
    const reported = (any: number) => [
      `guardrails.failing.any (${any}) has no effect: limits.maxSteps (7) ends the run first.`,
      { type: 'StatewrightWarning', code: 'unreachable_setting' },
    ]
    create(8)
    await until(() => warn.mock.calls.length === 1)
    create(8)
    create(9)
    await until(() => warn.mock.calls.length === 2)
    expect(warn.mock.calls).toEqual([reported(8), reported(9)])
    warn.mockRestore()
  })

  test('is not a count that means never', () => {
    const failing = { any: 1_000, identical: 9_999 }
    expect(find({ limits: { maxSteps: 7 }, guardrails: { failing } })).toEqual([])
  })
})

/** Counters that grow by one per step from the first step, so their final values are known. */
const counting = [...guardKnobs, ...progressKnobs].filter(({ key }) =>
  /failing\.\w+$|(sameError|unknownTools|refused|policyDenied|transient)\.(nudgeAt|haltAt)$|repeatedOutput\.rounds$|cycle\.haltAt$/.test(
    key,
  ),
)
const others = [...runKnobs, ...guardKnobs, ...progressKnobs].filter(({ key }) =>
  /\.(nudgeAt|blockAt|haltAt)$/.test(key),
)

describe('in a run', () => {
  beforeEach(() => {
    jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  })
  afterEach(() => {
    jest.restoreAllMocks()
  })

  test.each(counting.filter(({ values }) => typeof values[0] === 'number').map((knob) => [knob.key, knob]))(
    '%s causes a warning exactly if no run reaches it',
    async (_, knob) => {
      const scene = { ...knob.scene, turns: [...knob.scene.turns, ...knob.scene.turns] }
      for (const maxSteps of [2, 3]) {
        for (const value of [maxSteps, maxSteps + 1]) {
          const config = { ...withSetting(knob, value), limits: { maxSteps } }
          const isWarnedOf = findUnreachableSettings(config, resolveConfig(config)).some(
            ({ path }) => path === knob.key,
          )
          const isReached = knob.look(await playScene(scene, config))
          expect([maxSteps, value, isWarnedOf]).toEqual([maxSteps, value, !isReached])
        }
      }
    },
  )

  test.each(others.map((knob) => [knob.key, knob]))(
    '%s causes no warning if a run reaches it',
    async (_, knob) => {
      for (const [i, value] of knob.values.slice(0, 2).entries()) {
        const config = withSetting(knob, value)
        const most = knob.scene.turns.length
        for (const maxSteps of [most - 1, most]) {
          if (maxSteps < 1) continue
          const capped = { ...config, limits: { maxSteps } }
          const isReached = knob.look(await playScene(knob.scene, capped)) === true
          const found = findUnreachableSettings(capped, resolveConfig(capped)).map(({ path }) => path)
          expect([i, maxSteps, isReached && found.includes(knob.key)]).toEqual([i, maxSteps, false])
        }
      }
    },
  )
})
