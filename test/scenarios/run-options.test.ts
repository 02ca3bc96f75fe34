import { createAgent, createSession, memoryStore, type RunOptions, UsageError } from '../../src/index.js'
import { ManualModel, settled } from '../support/manual-model.js'

const agent = () => createAgent({ model: new ManualModel() })

test.each([
  ['a limit next to limits', { maxSteps: 1 }, /no option 'maxSteps'.*limits/],
  ['a misspelt option', { sesion: 's' }, /no option 'sesion'/],
  ['an invalid signal', { signal: 'now' }, /AbortSignal/],
  ['an invalid journal', { journal: {} }, /append/],
  ['invalid options', 'fast', /must be an object/],
])('%s is refused with a sentence', (_, options, sentence) => {
  expect(() => agent().run('Go.', options as unknown as RunOptions)).toThrow(sentence)
  expect(() => agent().run('Go.', options as unknown as RunOptions)).toThrow(UsageError)
})

test('an unknown option of resume is refused, too', async () => {
  const stored = createAgent({ model: new ManualModel(), store: memoryStore() })
  await expect(stored.resume('s', { contxt: 1 } as never)).rejects.toMatchObject({
    code: 'invalid_option',
    subject: 'contxt',
    message: "resume() has no option 'contxt'. The options are signal, context, budgets, inspect.",
  })
})

test.each([
  ['an answer', { role: 'assistant', content: 'Done.' }, /only user messages are allowed/],
  [
    'a message with an empty client id',
    { content: 'Go.', clientId: '' },
    /clientId must be a string of 1 to 200/,
  ],
])('%s is no reply', async (_, message, sentence) => {
  const stored = createAgent({ model: new ManualModel(), store: memoryStore() })
  const run = stored.run('Go.', { session: 's' })
  await settled()
  await expect(stored.send('s', { type: 'reply', input: [message as never] })).rejects.toThrow(sentence)
  run.cancel()
  await run.result
})

test('a stored session has one log, whose records start at 1', async () => {
  const stored = createAgent({ model: new ManualModel(), store: memoryStore() })
  const journal = { append: () => undefined, flush: () => undefined }
  expect(() => stored.run('Go.', { session: 's', journal })).toThrow(/only one log/)
  await expect(stored.replay('s', { to: 0 })).rejects.toThrow(/record number, starting at 1 \(got 0\)/)
})

test('a refused run leaves its session unlocked', async () => {
  const session = createSession()
  const one = agent()
  expect(() => one.run('Go.', { session, signal: 'now' } as unknown as RunOptions)).toThrow(UsageError)
  const run = one.run('Go.', { session })
  await settled()
  run.cancel()
  expect((await run.result).state).toBe('CANCELLED')
})

test('tokens of an interrupted stream are estimated, not free', async () => {
  const model = new ManualModel()
  const run = createAgent({ model, retry: { maxAttempts: 1 } }).run('Go.')
  await settled()
  model.pending?.delta('word '.repeat(40))
  model.pending?.fail()
  const { state, usage } = await run.result
  expect(state).toBe('ERROR')
  expect(usage.outputTokens).toBeGreaterThan(20)
  expect(usage.estimated).toBe(true)
})

test('the cost of a first answer that is cancelled midway is known', async () => {
  const model = Object.assign(new ManualModel(), { provider: 'openai', model: 'gpt-4o' })
  const session = createSession()
  const one = createAgent({ model })
  const run = one.run('Go.', { session })
  while (!model.pending) await settled()
  await import('@pydantic/genai-prices')
  await settled()
  model.pending.delta('Half an answer')
  run.cancel()
  await run.result
  expect(session.usage.cost).toBeGreaterThan(0)
})
