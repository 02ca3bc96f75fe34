import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as fleet from '../../src/fleet/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'

test('examples/sleep.mjs sleeps twice, is woken by a scheduler, and ends', async () => {
  jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
  jest.unstable_mockModule('statewright/fleet', () => ({ ...fleet }), { virtual: true })
  jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal }), { virtual: true })
  const example = '../../examples/sleep.mjs'
  const { sleepy } = (await import(example)) as { sleepy: () => Promise<string[]> }
  expect(await sleepy()).toEqual([
    'PAUSED sleeping',
    'PAUSED sleeping',
    'COMPLETED The invoice is paid, and the goods are on their way.',
  ])
})
