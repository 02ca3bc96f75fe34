import * as core from '../../src/index.js'
import * as testing from '../../src/testing/index.js'
import { loadExample, provideEntries } from '../support/entries.js'

test('examples/check-agent.mjs finds the problems of the careless agent, and none in the other', async () => {
  provideEntries({ statewright: core, 'statewright/testing': testing })
  const { checkBoth } = await loadExample<{ checkBoth: (options: object) => Promise<string[]> }>(
    'check-agent.mjs',
  )
  const [careless, careful] = await checkBoth({ only: ['truncation', 'approvals'] })
  expect(careless).toContain(
    '✗ unfinished-stream: A call is not executed when the stream closes without an end marker',
  )
  expect(careful).toContain('0 broken')
})
