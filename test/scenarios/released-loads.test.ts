import { jest } from '@jest/globals'
import { createAgent, memoryStore } from '../../src/index.js'
import { runControls } from '../../src/core/live/run-controls.js'
import { call, createOneCallModel, plainAnswer, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

let startLoad = (): void => undefined
const loadStarted = new Promise<void>((resolve) => (startLoad = resolve))
let endLoad = (): void => undefined
const loadEnds = new Promise<void>((resolve) => (endLoad = resolve))
const opened: unknown[] = []

// In a separate file, because it replaces a module.
jest.unstable_mockModule('../../src/core/effects/sub-agent-batch.js', async () => {
  startLoad()
  await loadEnds
  const createSubAgentBatch = () => ({
    execute: (...call: unknown[]) => opened.push(call),
    stop: () => undefined,
    takeUsage: () => null,
  })
  return { createSubAgentBatch }
})

it('A run that is released while its sub-agents load leaves them to the next process', async () => {
  const child = createAgent({ model: createOneCallModel('none') })
  const research = child.asTool({ name: 'research', description: 'Finds out.' })
  let endPay = (): void => undefined
  const pay = tool('pay', () => new Promise<void>((resolve) => (endPay = resolve)))
  const store = memoryStore()
  const toolCalls = [call('a', 'research', { task: 'Go.' }), call('b', 'pay')]
  const model = { ...createOneCallModel('none'), request: async () => ({ ...plainAnswer, toolCalls }) }
  const run = createAgent({ model, tools: [research, pay], store }).run('Go.', { session: 's' })
  await loadStarted
  const released = runControls.release(run)
  endLoad()
  await settled()
  // The release waits for a call that must not run twice.
  endPay()
  await released
  expect(opened).toEqual([])
  expect(store.get('s')?.holder).toBeNull()
  const records = store
    .read('s')
    .map(({ data }) => data)
    .join('\n')
  expect(records.match(/TOOL_RESULT/g)).toEqual(['TOOL_RESULT'])
})
