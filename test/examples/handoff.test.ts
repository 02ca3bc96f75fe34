import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'

test('examples/handoff.mjs hands the conversation on, back, and on again', async () => {
  jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
  jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal }), { virtual: true })
  const example = '../../examples/handoff.mjs'
  const { helpDesk } = (await import(example)) as { helpDesk: () => Promise<string[]> }
  expect(await helpDesk()).toEqual([
    '> I paid bill B7 twice.',
    'triage → billing',
    'You have your money back.',
    '> And where is my parcel?',
    'billing → triage',
    'triage → shipping',
    'Your parcel comes on Monday.',
  ])
})
