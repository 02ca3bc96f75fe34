import { jest } from '@jest/globals'
import { createAgent, createSessionRunner, memoryStore } from '../../src/index.js'
import { ManualModel, settled } from '../support/manual-model.js'

afterEach(() => {
  jest.useRealTimers()
})

test('a draining process starts nothing, and stops long work if another process can continue it', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask', 'nextTick'] })
  const [store, model] = [memoryStore(), new ManualModel()]
  const own = createSessionRunner(createAgent({ model, store }), { drainMs: 1000 })
  const [short, long] = ['short', 'long'].map((session) => own.runSession({ session, input: 'Go.' }))
  for (let i = 0; i < 1000 && model.attempts.length < 2; i += 1) await settled()
  expect(own.active).toBe(2)
  let isDrained = false
  const drained = own.drain().then(() => (isDrained = true))
  await expect(own.runSession({ session: 'late', input: 'Go.' })).rejects.toMatchObject({
    code: 'draining',
    retryable: true,
  })
  model.attempts[0]?.answer({ text: 'Done.' })
  expect(await short).toMatchObject({ state: 'COMPLETED' })
  expect(isDrained).toBe(false)
  jest.advanceTimersByTime(1000)
  expect(await long).toMatchObject({ state: 'RUNNING', stopped: true })
  await drained
  expect(own.active).toBe(0)
  expect(store.list().every(({ holder }) => holder === null)).toBe(true)
  expect(store.get('late')).toBeNull()
})

test('a drain accepts a number', () => {
  const agent = createAgent({ model: new ManualModel(), store: memoryStore() })
  expect(() => createSessionRunner(agent, { drainMs: -1 })).toThrow(
    expect.objectContaining({ subject: 'drainMs' }),
  )
})
