import { jest } from '@jest/globals'
import type { AnyTransitionDefinition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import { listTransitions } from '../../../src/core/chart/state-labels.js'
import { configMutants } from '../../mutation/config-mutants.js'
import { walk } from './random-walk.js'
import { createIdleAgent, SideBySide } from './side-by-side.js'
import { spoiltTables } from './spoilt-tables.js'
import { longTest } from '../../support/extent.js'

/** `npm run suite -- interpreter` runs a million events. `npm test` runs a sample. */
const isWhole = process.env.STATEWRIGHT_INTERPRETER === 'all'
const macrosteps = isWhole ? 1_000_000 : 5_000
const mutantsApart = isWhole ? 1 : 47

jest.setTimeout(1_200_000)

test(`${macrosteps} random events have the same result in XState and in the tables`, () => {
  const pair = new SideBySide(createIdleAgent())
  expect(walk(pair, macrosteps, 1)?.toString()).toBeUndefined()
  expect(pair.macrosteps).toBeGreaterThanOrEqual(macrosteps)
  const effective = listTransitions(pair.machine).filter(({ definition }) => isEffective(definition))
  const missed = effective.filter(({ definition }) => !pair.seen.has(definition))
  // Few in total. The generated paths in test/graph play every transition with both interpreters.
  expect(missed.length).toBeLessThan(effective.length / (isWhole ? 10 : 2))
})

function isEffective({ target, actions }: AnyTransitionDefinition): boolean {
  return target !== undefined || actions.length > 0
}

longTest('a mutated chart is run as mutated, because the tables are derived from it', () => {
  const mutants = configMutants().filter((_, i) => i % mutantsApart === 0)
  expect(mutants.length).toBeGreaterThan(10)
  for (const { name, machine } of mutants) {
    const { actors } = createIdleAgent().implementations
    const pair = new SideBySide(machine.provide({ actors: actors as never }))
    expect([name, walk(pair, 60, 2)?.toString()]).toEqual([name, undefined])
  }
})

test.each(Object.entries(spoiltTables))('the comparison detects tables that %s', (_, spoil) => {
  const machine = createIdleAgent()
  const found = walk(new SideBySide(machine, spoil(machine)), 20_000, 3)
  expect(found?.toString()).toMatch(/the event '.+' makes a difference: /)
})

test('the agent of the comparison has the chart of the product', () => {
  expect(createIdleAgent().config).toBe(agentMachine.config)
})
