import { agentMachine } from '../../machines/agent.machine.js'
import { agentSpace, anyState, canReach, coverPaths, isFinal } from '../../src/testing/index.js'

const space = agentSpace()
const { paths, coverage } = coverPaths(agentMachine, { ...space, coverage: 'transition-pairs' })

test('the paths take every transition that the chart declares', () => {
  const missed = coverage.transitions.filter(({ taken }) => taken === 0)
  expect(missed.map(({ id, uncovered }) => `${id}: ${uncovered?.message}`)).toEqual([])
  expect(coverage.states.filter(({ reached }) => !reached)).toEqual([])
})

test('the paths take every pair of transitions that can follow each other', () => {
  expect(coverage.pairs?.filter(({ taken }) => taken === 0)).toEqual([])
  expect(coverage.pairs?.length).toBeGreaterThan(coverage.transitions.length)
})

test('the paths start with every input', () => {
  expect(new Set(paths.map(({ input }) => input))).toEqual(new Set(Object.keys(space.inputs)))
})

test('from every state a final one can be reached, even if nobody cancels and no deadline passes', () => {
  const patient = canReach(agentMachine, anyState, isFinal, {
    ...space,
    alphabet: (snapshot) =>
      Object.fromEntries(
        Object.entries(space.alphabet(snapshot)).filter(
          ([, { type }]) => type !== 'CANCEL' && type !== 'DEADLINE',
        ),
      ),
  })
  expect(patient.message).toMatch(/^From each of \d+ states there is a way to final\.$/)
  expect(patient.holds).toBe(true)
})
