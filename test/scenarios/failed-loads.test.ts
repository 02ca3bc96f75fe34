import { jest } from '@jest/globals'
import { type AgentEvent, createAgent } from '../../src/index.js'
import { createOneCallModel } from '../support/manual-model.js'

// In a separate file, because code that is loaded on use cannot be loaded here.
const offline = (): never => {
  throw new Error('Offline.')
}

jest.unstable_mockModule('../../src/core/effects/sub-agent-batch.js', offline)

it('The model reads that a sub-agent could not be loaded', async () => {
  const child = createAgent({ model: createOneCallModel('none') })
  const research = child.asTool({ name: 'research', description: 'Finds out.' })
  const model = createOneCallModel('research', () => 'Done.', { task: 'Go.' })
  const run = createAgent({ model, tools: [research] }).run('Go.')
  const results: string[][] = []
  run.events$.subscribe((event: AgentEvent) => {
    if (event.type === 'tool_result') results.push([event.status, event.content])
  })
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(results).toEqual([['error', 'The sub-agent could not be loaded: Offline.']])
})
