import { z } from 'zod'
import { createAgent, defineTool } from '../../src/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'

const waits = defineTool({
  name: 'wait',
  description: 'Waits for ever.',
  input: z.object({}),
  execute: () => new Promise<string>(() => undefined),
})

test('only an answer that is still being streamed is kept as partial when the run is cancelled', async () => {
  const model = new ManualModel()
  const run = createAgent({ model, tools: [waits] }).run('Go.')
  await settled()
  model.pending?.delta('I will wait.')
  model.pending?.answer({ text: 'I will wait.', toolCalls: [call('c1', 'wait')] })
  await settled()
  run.cancel()
  const { messages, usage } = await run.result
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'Go.'],
    ['assistant', 'I will wait.'],
    ['tool', 'Interrupted: the run stopped while this call was running. Its outcome is unknown.'],
  ])
  expect(usage).toMatchObject({ totalTokens: 15, estimated: false })
})

test('an answer that is being streamed is kept, marked and estimated', async () => {
  const model = new ManualModel()
  const run = createAgent({ model }).run('Go.')
  await settled()
  model.pending?.delta('Half an ')
  run.cancel()
  const { messages, usage, output } = await run.result
  expect(messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Half an ', data: { partial: true } })
  expect(output).toBe('Half an ')
  expect(usage.estimated).toBe(true)
})

test('a subscriber that cancels at the end of the stream does not lose the answer', async () => {
  const model = new ManualModel()
  const run = createAgent({ model, tools: [waits] }).run('Go.')
  run.events$.subscribe((event) => {
    if (event.type === 'stream_chunk' && event.finished) run.cancel()
  })
  await settled()
  model.pending?.delta('I will wait.')
  model.pending?.answer({ text: 'I will wait.', toolCalls: [call('c1', 'wait')] })
  const { state, messages, usage } = await run.result
  expect(state).toBe('CANCELLED')
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  expect(usage).toMatchObject({ totalTokens: 15, estimated: false })
})

test('a pause that waits does not wait for a back-off, too', async () => {
  const model = new ManualModel()
  const run = createAgent({ model }).run('Go.')
  await settled()
  run.pause()
  model.pending?.fail({ retryAfterMs: 60_000 })
  expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'paused' })
  run.resume()
  await settled()
  model.pending?.answer({ text: 'Done.' })
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
})

test('steering that the model never heard is said so', async () => {
  const model = new ManualModel()
  const run = createAgent({ model }).run('Go.')
  const warnings: string[] = []
  run.events$.subscribe((event) => {
    if (event.type === 'warning') warnings.push(event.code)
  })
  await settled()
  run.steer('Hurry.')
  run.cancel()
  await run.result
  expect(warnings).toEqual(['steering_not_delivered'])
})
