import { jest } from '@jest/globals'
import { agentSchema } from '../../../src/core/config/agent-sections.js'
import type { Kind } from '../../../src/core/config/kind.js'
import { guardKnobs } from './knobs/guard-knobs.js'
import { type Knob, withSetting } from './knobs/knob.js'
import { describeOutcome, type Outcome, playScene } from './knobs/play-scene.js'
import { progressKnobs } from './knobs/progress-knobs.js'
import { runKnobs } from './knobs/run-knobs.js'
import { sampledRows } from '../../support/extent.js'

const knobs: readonly Knob[] = [...runKnobs, ...guardKnobs, ...progressKnobs]

/** Keys without a visible effect on a run, each with the reason. */
const excused: Readonly<Record<string, string>> = {}

/** Every setting of the schema, including groups that can be switched off. */
function listKeys(kind: Kind, parent = ''): { key: string; kind: Kind }[] {
  return kind.keys.flatMap(([name, inner]) => {
    const key = parent === '' ? name : `${parent}.${name}`
    const own = inner.keys.length === 0 || takes(inner, null) ? [{ key, kind: inner }] : []
    return [...own, ...listKeys(inner, key)]
  })
}

function takes(kind: Kind, value: unknown): boolean {
  let isRefused = false
  kind.read(value, [], () => {
    isRefused = true
  })
  return !isRefused
}

const settings = listKeys(agentSchema)
const isNumber = (kind: Kind): boolean => takes(kind, 1) && !takes(kind, 'text') && !takes(kind, true)
const kindOf = (key: string): Kind => settings.find((one) => one.key === key)?.kind as Kind
const play = async (knob: Knob, values: readonly unknown[]): Promise<Outcome[]> => {
  const outcomes: Outcome[] = []
  for (const value of values) {
    outcomes.push(await playScene(knob.scene, withSetting(knob, value)))
  }
  return outcomes
}

beforeEach(() => {
  // Zero jitter.
  jest.spyOn(Math, 'random').mockReturnValue(0.5)
  // Scenes disable rules with numbers that no run reaches.
  jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
})
afterEach(() => {
  jest.restoreAllMocks()
})

test('every setting has a witness, or a reason to have none', () => {
  const witnessed = new Set(knobs.map(({ key }) => key))
  const keys = settings.map(({ key }) => key)
  expect(keys.filter((key) => !witnessed.has(key) && !(key in excused))).toEqual([])
  expect([...witnessed, ...Object.keys(excused)].filter((key) => !keys.includes(key))).toEqual([])
  expect(Object.keys(excused).filter((key) => witnessed.has(key))).toEqual([])
  expect(keys.length).toBeGreaterThan(100)
})

test('every number is tested just below, at and just above its threshold', () => {
  const numbers = knobs.filter(({ key }) => isNumber(kindOf(key)))
  for (const { key, values } of numbers) {
    const [below, at, above] = values as number[]
    const step = Number.isInteger(at) && Number.isInteger(below) ? 1 : 0.01
    expect([key, below, above]).toEqual([
      key,
      expect.closeTo(Number(at) - step),
      expect.closeTo(Number(at) + step),
    ])
  }
  const tried = new Set(numbers.map(({ key }) => key))
  expect(settings.filter(({ key, kind }) => isNumber(kind) && !tried.has(key))).toEqual([])
})

describe.each(sampledRows(knobs).map((knob) => [knob.key, knob] as const))('%s', (key, knob) => {
  test('alone changes the end of a run', async () => {
    const outcomes = await play(knob, knob.values)
    expect(outcomes.map(knob.look)).toEqual(knob.sees)
    expect(new Set(outcomes.map(describeOutcome)).size).toBeGreaterThan(1)
  })

  if (isNumber(kindOf(key)))
    test('is detected if it is off by one', async () => {
      const [below, at, above] = knob.values as [number, number, number]
      const [beyond] = await play(knob, [above + at - below])
      // Catches a comparison that is off by one.
      const shifted = [...knob.sees.slice(1, 3), beyond && knob.look(beyond)]
      expect(shifted).not.toEqual(knob.sees.slice(0, 3))
    })
})
