import * as core from '../../src/index.js'
import * as fleet from '../../src/fleet/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import { loadExample, provideEntries } from '../support/entries.js'

test('examples/fleet.mjs keeps a budget in a batch, and ends the runs that wait', async () => {
  provideEntries({ statewright: core, 'statewright/fleet': fleet, 'statewright/rehearsal': rehearsal })
  const { runFleet } = await loadExample<{ runFleet: () => Promise<string[]> }>('fleet.mjs')
  expect(await runFleet()).toEqual([
    'batch: 6 reports, 4 not covered by the budget',
    'budget: 600 of 700 tokens spent',
    'cancelled: 3 of 3 runs',
  ])
})
