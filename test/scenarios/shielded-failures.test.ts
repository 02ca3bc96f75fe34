import {
  type AgentEvent,
  createAgent,
  withFallbacks,
  memoryStore,
  ModelError,
  type ModelProvider,
  patternShield,
  type ShieldsOptions,
} from '../../src/index.js'
import { plainAnswer } from '../support/manual-model.js'

const secret = /SECRET/

/** A model that fails with overload errors this many times, echoing its request, then answers. */
function overloaded(times: number): ModelProvider {
  let requestCount = 0
  return {
    provider: 'manual',
    model: `manual-${times}`,
    request: () => {
      requestCount += 1
      if (requestCount > times) return Promise.resolve({ ...plainAnswer, text: 'Done.' })
      const message = 'Overloaded while it read "SECRET".'
      return Promise.reject(new ModelError({ kind: 'transient', code: 'overloaded', message }))
    },
  }
}

async function reportOf(
  model: ModelProvider,
  action: 'redact' | 'block',
): Promise<{ events: AgentEvent[]; records: string; state: string; message: string | undefined }> {
  const shields: ShieldsOptions = {
    output: [patternShield({ patterns: [secret], action, replacement: '[redacted]' })],
  }
  const store = memoryStore()
  const retry = { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 1 }
  const agent = createAgent({ model, shields, store, retry })
  const events: AgentEvent[] = []
  const run = agent.run('Go.', { session: 's' })
  run.events$.subscribe((event) => events.push(event))
  const { state, error } = await run.result
  return { events, records: JSON.stringify(store.read('s')), state, message: error?.message }
}

test.each([
  ['redact', 'Overloaded while it read "[redacted]".'],
  ['block', 'The provider failed. A shield withheld the error message.'],
] as const)("a provider's error message passes the output shields (%s)", async (action, words) => {
  const { events, records, state, message } = await reportOf(overloaded(9), action)
  expect(state).toBe('ERROR')
  expect(message).toContain(words)
  expect(events.filter(({ type }) => type === 'retry')).toMatchObject([
    { code: 'overloaded', message: words },
  ])
  expect(JSON.stringify(events) + records).not.toMatch(secret)
})

test('a retry with another model reveals no unscreened text', async () => {
  const { events, records, state } = await reportOf(withFallbacks([overloaded(9), overloaded(0)]), 'redact')
  expect(state).toBe('COMPLETED')
  expect(events.filter(({ type }) => type === 'retry')).toMatchObject([
    { code: 'overloaded', message: expect.stringContaining('Asking manual-0 (manual) instead.') },
  ])
  expect(JSON.stringify(events) + records).not.toMatch(secret)
})
