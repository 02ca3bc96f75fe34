import { SimulatedClock } from 'xstate'
import { z } from 'zod'
import { createAgent, defineTool } from '../../src/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'

const waits = defineTool({
  name: 'wait',
  description: 'Waits forever.',
  input: z.object({}),
  execute: () => new Promise<string>(() => undefined),
})

test('only a streaming answer is stored as partial when the run is cancelled', async () => {
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

test('a streaming answer is stored, marked and estimated', async () => {
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

test('a pending pause does not wait for a back-off, either', async () => {
  const [model, clock] = [new ManualModel(), new SimulatedClock()]
  const run = createAgent({ model, clock }).run('Go.')
  await settled()
  run.pause()
  model.pending?.fail({ retryAfterMs: 60_000 })
  expect(await run.result).toMatchObject({ state: 'PAUSED', reason: 'paused' })
  clock.increment(60_000)
  run.resume()
  await settled()
  model.pending?.answer({ text: 'Done.' })
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
})

test.each([
  ['none', { window: 0 }],
  ['one', { window: 1_000 }],
])(
  'a pause does not shorten a wait that the provider requested, with a context window: %s',
  async (_, context) => {
    const [model, clock] = [new ManualModel(), new SimulatedClock()]
    const tokenizer = { count: (text: string) => text.length }
    const run = createAgent({ model, clock, context, tokenizer }).run('Go.')
    await settled()
    model.pending?.fail({ retryAfterMs: 60_000 })
    await settled()
    for (const goOn of [() => run.resume(), () => run.steer('Hurry.')]) {
      clock.increment(10_000)
      run.pause()
      expect((await run.result).state).toBe('PAUSED')
      goOn()
      await settled()
      expect(model.pending).toBeNull()
    }
    clock.increment(39_999)
    await settled()
    expect(model.attempts).toHaveLength(1)
    clock.increment(1)
    await settled()
    expect(model.attempts[1]?.request.messages.at(-1)).toMatchObject({ content: 'Hurry.' })
    model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  },
)

test('steering that the model never read is reported', async () => {
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
