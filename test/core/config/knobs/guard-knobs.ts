import { type AgentConfigInput, createAgent, ToolError } from '../../../../src/index.js'
import { noGuards } from '../../../../guards/roster.js'
import { countRequests, type Knob, lookAtEnd, lookAtState, lookFor } from './knob.js'
import { createTool, type Outcome, type Scene, type Turn } from './play-scene.js'

type Guardrails = NonNullable<AgentConfigInput['guardrails']>

const turnsOf = (...calls: readonly (readonly [string, object?])[]): Turn[] =>
  calls.map((call) => ({ calls: [call] }))
const times = (count: number, call: readonly [string, object?]): Turn[] =>
  turnsOf(...Array.from({ length: count }, () => call))
const read = createTool('read', () => 'the same', { readOnly: true })
const write = createTool('write', () => 'the same')
const echo = createTool('echo', (input) => JSON.stringify(input), { readOnly: true })
const fails = (kind: 'failed' | 'transient' | 'policy_denied') =>
  createTool('fail', () => {
    throw new ToolError(kind, 'It broke.')
  })
const alone = (guardrails: Guardrails): AgentConfigInput => ({ guardrails: { ...noGuards, ...guardrails } })

/** The same call three times, then one more request for it. */
const repeats: Scene = {
  turns: times(4, ['read']),
  tools: () => [read],
  config: alone({ maxRepeatedToolSteps: 3, repeatedCall: {} }),
}
const pausing = (scene: Scene, guard: 'repeatedCall' | 'repeatedOutput' | 'cycle' | 'failing'): Scene => ({
  ...scene,
  config: {
    guardrails: {
      ...scene.config?.guardrails,
      [guard]: { ...(scene.config?.guardrails?.[guard] as object), onHalt: 'pause' },
    },
  },
})
/** Three rounds with the same output. */
const outputs: Scene = {
  turns: turnsOf(['read', { n: 1 }], ['read', { n: 2 }], ['read', { n: 3 }]),
  tools: () => [read],
  config: alone({ repeatedOutput: { rounds: 3 } }),
}
const writes: Scene = {
  turns: turnsOf(['write', { n: 1 }], ['write', { n: 2 }], ['write', { n: 3 }]),
  tools: () => [write],
  config: alone({ repeatedOutput: { rounds: 3 } }),
}
const rounds = (period: number, count: number): Turn[] =>
  Array.from({ length: period * count }, (_, i) => ({ calls: [['echo', { n: i % period }]] }))
/** Three full rounds of two calls. */
const circles: Scene = {
  turns: rounds(2, 3),
  tools: () => [echo],
  config: alone({ cycle: { nudgeAt: 2, haltAt: 3 } }),
}
const quiet = { identical: 99, any: 99, transientIdentical: 99, transientAny: 99, policyDenied: 99 }
/** Three failures, of the same call or of different calls. */
const failures = (
  kind: 'failed' | 'transient' | 'policy_denied',
  isSame: boolean,
  count = 3,
  more: object = {},
): Scene => ({
  turns: Array.from({ length: count }, (_, n) => ({ calls: [['fail', { n: isSame ? 0 : n }]] })),
  tools: () => [fails(kind)],
  config: alone({ failing: { ...quiet, ...more } }),
})
/** A sub-agent whose account is exhausted. */
const delegates: Scene = {
  turns: [{ calls: [['child', { task: 'Look.' }]] }],
  tools: () => {
    const model = {
      provider: 'played',
      model: 'played-2',
      request: () =>
        Promise.reject(Object.assign(new Error('Pay first.'), { status: 402, code: 'insufficient_quota' })),
    }
    return [createAgent({ model }).asTool({ name: 'child', description: 'Looks.' }) as never]
  },
  config: alone({ terminalDelegation: {} }),
}
const actions = ({ events }: Outcome): string =>
  events.flatMap((event) => (event.type === 'guardrail' ? [event.action] : [])).join()

const halts = lookFor('halt')
const never = { nudgeAt: 99, haltAt: 99 }

/** Settings shared by the preset guards: the effect of a halt, and whether last words follow. */
function sharedKnobs(guard: 'repeatedCall' | 'repeatedOutput' | 'cycle' | 'failing', scene: Scene): Knob[] {
  const key = `guardrails.${guard}`
  return [
    { key: `${key}.onHalt`, scene, values: ['error', 'pause'], look: lookAtState, sees: ['ERROR', 'PAUSED'] },
    {
      key: `${key}.lastWords`,
      scene: pausing(scene, guard),
      values: [true, false],
      look: ({ requests, steps }) =>
        requests.length - steps + (requests.at(-1) as { tools: [] }).tools.length,
      sees: [0, 1],
    },
    { key, scene, values: [scene.config?.guardrails?.[guard], null], look: halts, sees: [true, false] },
  ]
}

export const guardKnobs: readonly Knob[] = [
  ...sharedKnobs('repeatedCall', repeats),
  ...sharedKnobs('repeatedOutput', outputs),
  ...sharedKnobs('cycle', circles),
  ...sharedKnobs('failing', failures('failed', true, 3, { identical: 3 })),
  {
    key: 'guardrails.maxRepeatedToolSteps',
    scene: repeats,
    values: [2, 3, 4, null],
    look: halts,
    sees: [true, true, false, false],
  },
  {
    key: 'guardrails.repeatedCall.valueChars',
    scene: {
      ...repeats,
      turns: turnsOf(...['aaab', 'aaac', 'aaad', 'aaae'].map((at) => ['read', { at }] as const)),
    },
    values: [2, 3, 4, null],
    look: halts,
    sees: [true, true, false, false],
  },
  {
    key: 'guardrails.repeatedCall.haltAt',
    scene: repeats,
    values: ['next', 'reached'],
    look: countRequests,
    sees: [4, 3],
  },
  {
    key: 'guardrails.repeatedCall.counts',
    scene: {
      ...repeats,
      tools: () => {
        let n = 0
        return [createTool('read', () => `Result ${(n += 1)}`, { readOnly: true })]
      },
    },
    values: ['unchanged', 'all'],
    look: halts,
    sees: [false, true],
  },
  {
    key: 'guardrails.repeatedCall.onRepeat',
    scene: repeats,
    values: ['halt', 'block'],
    look: actions,
    sees: ['nudge,halt', 'nudge,block'],
  },
  {
    key: 'guardrails.repeatedOutput.rounds',
    scene: outputs,
    values: [2, 3, 4],
    look: halts,
    sees: [true, true, false],
  },
  {
    key: 'guardrails.repeatedOutput.strict',
    scene: writes,
    values: [false, true],
    look: actions,
    sees: ['nudge', 'halt'],
  },
  {
    key: 'guardrails.cycle.maxPeriod',
    scene: { ...circles, turns: rounds(3, 3) },
    values: [2, 3, 4],
    look: halts,
    sees: [false, true, true],
  },
  {
    key: 'guardrails.cycle.nudgeAt',
    scene: { ...circles, config: alone({ cycle: never }) },
    values: [2, 3, 4],
    look: lookFor('nudge'),
    sees: [true, true, false],
  },
  {
    key: 'guardrails.cycle.haltAt',
    scene: circles,
    values: [2, 3, 4],
    look: halts,
    sees: [true, true, false],
  },
  ...(
    [
      ['identical', failures('failed', true)],
      ['any', failures('failed', false)],
      ['transientIdentical', failures('transient', true)],
      ['transientAny', failures('transient', false)],
      ['policyDenied', failures('policy_denied', true)],
    ] as const
  ).map(
    ([name, scene]): Knob => ({
      key: `guardrails.failing.${name}`,
      scene,
      values: [2, 3, 4],
      look: halts,
      sees: [true, true, false],
    }),
  ),
  {
    key: 'guardrails.failing.onRepeat',
    scene: failures('failed', true, 4, { identical: 3 }),
    values: ['halt', 'block'],
    look: actions,
    sees: ['nudge,halt', 'nudge,block'],
  },
  {
    key: 'guardrails.terminalDelegation',
    scene: delegates,
    values: [{}, null],
    look: lookAtEnd,
    sees: ['ERROR terminal_delegation', 'COMPLETED end_turn'],
  },
  {
    key: 'guardrails.terminalDelegation.onHalt',
    scene: delegates,
    values: ['error', 'pause'],
    look: lookAtEnd,
    sees: ['ERROR terminal_delegation', 'PAUSED terminal_delegation'],
  },
]
