import type { SimulatedClock } from 'xstate'
import { noGuards } from '../../../../guards/roster.js'
import { progressDefaults } from '../../../../guards/progress-config.js'
import { type AgentConfigInput, ToolError } from '../../../../src/index.js'
import { countRequests, type Knob, lookAtEnd, lookAtState, lookFor } from './knob.js'
import { createTool, pass, type Scene, type Turn } from './play-scene.js'

/** The progress guard without detectors or last words. */
const noDetectors = Object.fromEntries(
  Object.entries(progressDefaults).flatMap(([key, value]) =>
    typeof value === 'object' ? [[key, null] as const] : [],
  ),
)
const watching = (detectors: object): AgentConfigInput => ({
  guardrails: { ...noGuards, progress: { ...noDetectors, onHalt: 'error', ...detectors } },
})

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n)
const turns = (count: number, input: (n: number) => object, name = 'read'): Turn[] =>
  range(count).map((n) => ({ calls: [[name, input(n)]] }))
const reads = (answer: (n: number) => string, traits: object = { readOnly: true }) => {
  return () => {
    let n = 0
    return [createTool('read', () => answer(n++), traits)]
  }
}
const same = reads(() => 'the same')
const echo = () => [createTool('read', (input) => JSON.stringify(input), { readOnly: true })]
const fails = (
  kind: 'failed' | 'transient' | 'policy_denied',
  words: (n: number) => string = () => 'broke',
) => {
  return () => {
    let n = 0
    return [
      createTool('read', () => {
        throw new ToolError(kind, `It ${words(n++)}.`)
      }),
      createTool('look', (input) => JSON.stringify(input), { readOnly: true }),
    ]
  }
}
const letters = ['alpha', 'bravo', 'charlie', 'delta', 'echo', 'foxtrot', 'golf']
const never = { nudgeAt: null, haltAt: null }

/** For each detector, a scene in which its count reaches exactly three before the run continues. */
const countsToThree: Record<string, Pick<Scene, 'turns' | 'tools'>> = {
  stale: { turns: turns(4, () => ({})), tools: same },
  mixed: { turns: turns(5, (n) => ({ n: n % 2 })), tools: echo },
  failing: { turns: turns(3, (n) => ({ n })), tools: fails('failed', (n) => letters[n] ?? '') },
  sameError: { turns: turns(3, (n) => ({ n })), tools: fails('failed') },
  unknownTools: { turns: turns(3, (n) => ({ n }), 'nothing'), tools: same },
  refused: { turns: turns(3, (n) => ({ n })), tools: fails('policy_denied') },
  policyDenied: { turns: turns(3, () => ({})), tools: fails('policy_denied') },
  transient: { turns: turns(3, (n) => ({ n })), tools: fails('transient') },
}

const nudges = lookFor('nudge')
const blocks = lookFor('block')
const halts = lookFor('halt')

/** A nudge, a refusal and a halt, each at the third. */
function stepKnobs(path: string, scene: Scene, steps: (values: object) => object, hasBlock: boolean): Knob[] {
  const key = `guardrails.progress.${path}`
  const of = (more: object = {}): Scene => ({ ...scene, config: watching(steps(more)) })
  const knobs: Knob[] = [
    {
      key: `${key}.nudgeAt`,
      scene: of(),
      values: [2, 3, 4, null],
      look: nudges,
      sees: [true, true, false, false],
    },
    {
      key: `${key}.haltAt`,
      scene: of(),
      values: [2, 3, 4, null],
      look: halts,
      sees: [true, true, false, false],
    },
  ]
  if (!hasBlock) return knobs
  // The guard refuses a call before it runs, so the model asks for it once more.
  const last = scene.turns.at(-1) as Turn
  const back = scene.turns.at(-2) as Turn
  const again = path === 'mixed' ? back : last
  const request = { ...of(), turns: [...scene.turns, again] }
  return [
    ...knobs,
    {
      key: `${key}.blockAt`,
      scene: request,
      values: [2, 3, 4, null],
      look: blocks,
      sees: [true, true, false, false],
    },
  ]
}

const stale = (values: object): object => ({ stale: { ...never, blockAt: null, ...values } })
/** Four identical calls. The third repetition halts. */
const halting = (values: object = {}): Scene => ({
  ...(countsToThree['stale'] as Scene),
  config: watching({ ...stale({ haltAt: 3 }), ...values }),
})
const waiting = { ms: 100, chars: 300, weight: 0.1, underWay: 0.1 }
/** Three calls of 100 ms each. */
const slow = (values: object = {}, answer = 'the same'): Scene => ({
  turns: turns(3, () => ({})),
  tools: (clock: SimulatedClock) => [
    createTool('read', () => pass(clock, 100).then(() => answer), { readOnly: true }),
  ],
  config: watching({ ...stale({ haltAt: 2 }), waiting: { ...waiting, ...values } }),
})

const detectorKnobs = Object.entries(countsToThree).flatMap(([name, scene]): Knob[] => {
  const hasBlock = ['stale', 'mixed'].includes(name)
  const steps = (values: object): object => ({
    [name]: { ...never, ...(hasBlock && { blockAt: null }), ...values },
  })
  const off: Knob = {
    key: `guardrails.progress.${name}`,
    scene: { ...scene, config: watching({}) },
    values: [steps({ haltAt: 3 })[name as never], null],
    look: halts,
    sees: [true, false],
  }
  return [...stepKnobs(name, scene, steps, hasBlock), off]
})

export const progressKnobs: readonly Knob[] = [
  ...detectorKnobs,
  {
    key: 'guardrails.progress.waiting',
    scene: slow(),
    values: [waiting, null],
    look: halts,
    sees: [false, true],
  },
  {
    key: 'guardrails.progress.waiting.ms',
    scene: slow(),
    values: [99, 100, 101],
    look: halts,
    sees: [false, false, true],
  },
  {
    key: 'guardrails.progress.waiting.chars',
    scene: slow(),
    values: [7, 8, 9],
    look: halts,
    sees: [true, false, false],
  },
  {
    key: 'guardrails.progress.waiting.weight',
    scene: { ...slow(), turns: turns(5, () => ({})) },
    values: [0.49, 0.5, 0.51],
    look: halts,
    sees: [false, true, true],
  },
  {
    key: 'guardrails.progress.waiting.underWay',
    scene: { ...slow({ ms: 10_000 }, 'Still running.'), turns: turns(5, () => ({})) },
    values: [0.49, 0.5, 0.51],
    look: halts,
    sees: [false, true, true],
  },
  {
    key: 'guardrails.progress.memory',
    scene: {
      turns: turns(6, (n) => ({ n: n % 3 })),
      tools: echo,
      config: watching({ mixed: { nudgeAt: null, blockAt: null, haltAt: 3 } }),
    },
    values: [2, 3, 4],
    look: halts,
    sees: [false, true, true],
  },
  {
    key: 'guardrails.progress.onHalt',
    scene: halting(),
    values: ['error', 'pause'],
    look: lookAtState,
    sees: ['ERROR', 'PAUSED'],
  },
  {
    key: 'guardrails.progress.lastWords',
    scene: halting({ onHalt: 'pause' }),
    values: [true, false],
    look: countRequests,
    sees: [5, 4],
  },
  {
    key: 'guardrails.progress',
    scene: { ...halting() },
    values: [halting().config?.guardrails?.progress, null],
    look: lookAtEnd,
    sees: ['ERROR no_progress', 'COMPLETED end_turn'],
  },
]
