import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as fleet from '../../src/fleet/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'

test('examples/fleet.mjs keeps a budget in a batch, keeps a schedule, and ends the runs that wait', async () => {
  jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
  jest.unstable_mockModule('statewright/fleet', () => ({ ...fleet }), { virtual: true })
  jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal }), { virtual: true })
  const example = '../../examples/fleet.mjs'
  const { runFleet } = (await import(example)) as { runFleet: () => Promise<string[]> }
  expect(await runFleet()).toEqual([
    'batch: 6 reports, 4 that the budget could not pay for',
    'budget: 600 of 700 tokens spent',
    'schedule: the next report in 60 minutes',
    'told: 3 of 3 runs have ended',
  ])
})
