import { OpenAI } from 'openai'
import { type AgentEvent, createAgent, type OpenAIChatOptions, openaiChat } from '../../src/index.js'
import { startRehearsal, type TurnFunction } from '../../src/rehearsal/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { played } from '../support/play.js'

/** Matches no known key format, so only its sender can recognize it. */
const key = 'corp-9f3kq2vz-71'

const { OPENAI_API_KEY: before } = process.env

afterEach(() => {
  if (before === undefined) delete process.env.OPENAI_API_KEY
  else process.env.OPENAI_API_KEY = before
})

const ways: Record<string, () => Partial<OpenAIChatOptions>> = {
  'the option': () => ({ apiKey: key }),
  'a function': () => ({ apiKey: () => Promise.resolve(key) }),
  'the environment': () => {
    process.env.OPENAI_API_KEY = key
    return {}
  },
  'a header': () => ({ apiKey: 'none', headers: { 'x-gateway': `Token ${key}` } }),
  'the query': () => ({ apiKey: 'none', query: { access_key: key } }),
}

/** A provider that echoes the key in a sentence, in the code, cut in the middle, and in an answer. */
const echoes: Record<string, TurnFunction> = {
  'in its message': () => ({ status: 401, error: { message: `Your key ${key} is wrong.` } }),
  'in its code': () => ({ status: 401, error: { message: 'No.', code: `bad_key_${key}` } }),
  'where the message is cut': () => ({
    status: 401,
    error: { message: `${'x'.repeat(569)} ${key} is wrong.` },
  }),
  encoded: () => ({ status: 400, error: { message: `GET /v1?k=${encodeURIComponent(key)}` } }),
  midway: () => ({ text: 'Half', errorInStream: { after: 1, error: { message: `${key}?`, code: key } } }),
}

const cases = Object.keys(ways).flatMap((way) => Object.keys(echoes).map((echo) => [way, echo] as const))

test.each(cases)('a key from %s that a provider repeats %s appears nowhere', async (way, echo) => {
  const store = memoryStore()
  const rehearsal = await startRehearsal({ turns: [echoes[echo] as TurnFunction] })
  const model = openaiChat({ model: 'm', baseURL: rehearsal.url, ...ways[way]?.() })
  const run = createAgent({ model, store, retry: { maxAttempts: 1 } }).run('Go.', { session: 's' })
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => void events.push(event))
  const result = await run.result
  await rehearsal.close()
  expect(result).toMatchObject({ state: 'ERROR', reason: 'provider_error' })
  const everything = JSON.stringify([result, events, store.read('s')])
  expect(everything).toContain('[redacted]')
  expect(everything).not.toContain(key.slice(0, 10))
})

test('a key of a custom client does not appear, either', async () => {
  const turns = [{ status: 401, error: { message: `${key} and ${key}-too are wrong.` } }]
  const rehearsal = await startRehearsal({ turns })
  const defaultHeaders = { 'x-gateway': `${key}-too` }
  const client = new OpenAI({ apiKey: key, baseURL: rehearsal.url, defaultHeaders })
  const { error } = await createAgent({ model: openaiChat({ model: 'm', client }) }).run('Go.').result
  await rehearsal.close()
  expect(error?.message).toContain('[redacted] and [redacted] are wrong.')
})

test('a code is short, and contains no secret', async () => {
  const { result } = await played([
    { status: 400, error: { message: 'No.', code: `bad api_key=sk-abcdefghijklmnop ${'x'.repeat(5000)}` } },
  ])
  expect(result.error?.code).toMatch(/^bad api_key=\[redacted\]+ x+…$/)
  expect(result.error?.code).toHaveLength(100)
})
