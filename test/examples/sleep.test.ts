import * as core from '../../src/index.js'
import * as fleet from '../../src/fleet/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import { loadExample, provideEntries } from '../support/entries.js'

test('examples/sleep.mjs sleeps twice, is woken by a waker, and ends', async () => {
  provideEntries({ statewright: core, 'statewright/fleet': fleet, 'statewright/rehearsal': rehearsal })
  const { sleepy } = await loadExample<{ sleepy: () => Promise<string[]> }>('sleep.mjs')
  expect(await sleepy()).toEqual([
    'PAUSED sleeping',
    'PAUSED sleeping',
    'COMPLETED The invoice is paid, and the goods are on their way.',
  ])
})
