import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as testing from '../../src/testing/index.js'

test('examples/check-agent.mjs finds what is careless, and nothing in the other agent', async () => {
  jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
  jest.unstable_mockModule('statewright/testing', () => ({ ...testing }), { virtual: true })
  const example = '../../examples/check-agent.mjs'
  const { checkBoth } = (await import(example)) as { checkBoth: (options: object) => Promise<string[]> }
  const [careless, careful] = await checkBoth({ only: ['truncation', 'approvals'] })
  expect(careless).toContain(
    '✗ unfinished-stream: A call is not executed when the stream closes without an end',
  )
  expect(careful).toContain('0 broken')
})
