import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import { loadExample, provideEntries } from '../support/entries.js'

test('examples/handoff.mjs passes the conversation to another agent, back, and on again', async () => {
  provideEntries({ statewright: core, 'statewright/rehearsal': rehearsal })
  const { helpDesk } = await loadExample<{ helpDesk: () => Promise<string[]> }>('handoff.mjs')
  expect(await helpDesk()).toEqual([
    '> I paid bill B7 twice.',
    'triage → billing',
    'I have refunded bill B7.',
    '> And where is my parcel?',
    'billing → triage',
    'triage → shipping',
    'Your parcel arrives on Monday.',
  ])
})
