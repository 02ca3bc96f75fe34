import { createAgent, memoryStore, openaiChat, type OpenAIChatOptions } from '../../src/index.js'
import { start } from '../rehearsal/support.js'
import { tool } from '../support/tools.js'

const savedEnv = { ...process.env }

beforeEach(() => {
  for (const name of ['OPENAI_API_KEY', 'OPENAI_ADMIN_KEY', 'OPENAI_BASE_URL']) delete process.env[name]
})

afterEach(() => {
  Object.assign(process.env, savedEnv)
  Reflect.deleteProperty(globalThis, 'window')
  if (hadNoNavigator) Reflect.deleteProperty(globalThis, 'navigator')
})

const hadNoNavigator = !('navigator' in globalThis)

/** The `openai` client treats this as a page of results. */
function pretendBrowser(): void {
  Reflect.set(globalThis, 'window', { document: {} })
  if (hadNoNavigator) Reflect.set(globalThis, 'navigator', { userAgent: 'Mozilla/5.0' })
}

function agentOf(options: Partial<OpenAIChatOptions>) {
  return createAgent({ model: openaiChat({ model: 'gpt-test', ...options }) })
}

describe('a missing key', () => {
  it.each([
    ['without a store', {}],
    ['with a store', { store: memoryStore() }],
  ])('is refused by run() with a sentence, %s', (_how, options) => {
    const agent = createAgent({ model: openaiChat({ model: 'gpt-test' }), ...options })
    expect(() => agent.run('Hi.')).toThrow(
      expect.objectContaining({
        name: 'ConfigError',
        code: 'missing_api_key',
        subject: 'apiKey',
        message: expect.stringMatching(/OPENAI_API_KEY.*apiKey.*baseURL/),
      }),
    )
  })

  it('is only missing until it is set, and never for a custom address or client', async () => {
    const rehearsal = await start({ turns: [{ text: 'Hello.' }], onExhausted: 'loop' })
    const agent = agentOf({ fetch: (_url, init) => fetch(`${rehearsal.url}/chat/completions`, init) })
    expect(() => agent.run('Hi.')).toThrow(/OPENAI_API_KEY/)
    process.env.OPENAI_API_KEY = 'set-in-the-meantime'
    expect(await agent.run('Hi.').result).toMatchObject({ state: 'COMPLETED', output: 'Hello.' })
    delete process.env.OPENAI_API_KEY
    const local = agentOf({ baseURL: rehearsal.url })
    expect(await local.run('Hi.').result).toMatchObject({ state: 'COMPLETED' })
  })

  it('does not end a session with an open run, and an ended run is returned', async () => {
    const rehearsal = await start({
      turns: [{ toolCalls: [{ name: 'ask', arguments: {} }] }, { text: 'Done.' }],
    })
    const store = memoryStore()
    const tools = [tool('ask', () => 'yes', { needsApproval: true })]
    const local = openaiChat({ model: 'gpt-test', baseURL: rehearsal.url })
    const first = await createAgent({ model: local, store, tools }).run('Hi.', { session: 's' }).result
    expect(first.state).toBe('WAITING_FOR_INPUT')

    const keyless = createAgent({ model: openaiChat({ model: 'gpt-test' }), store, tools })
    await expect(keyless.resume('s')).rejects.toMatchObject({ code: 'missing_api_key' })

    const run = await createAgent({ model: local, store, tools }).resume('s')
    for (const { callId } of (await run.result).pending ?? []) run.approve(callId)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(await (await keyless.resume('s')).result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  it('ends an embedded machine in ERROR, with the same code', async () => {
    const agent = agentOf({})
    const { createActor, waitFor } = await import('xstate')
    const actor = createActor(agent.machine, { input: 'Hi.' })
    actor.start()
    const { output } = await waitFor(actor, ({ status }) => status === 'done')
    expect(output).toMatchObject({ state: 'ERROR', error: { code: 'missing_api_key', recoverable: false } })
  })
})

describe('in a browser', () => {
  it.each([
    ['a key', { apiKey: 'sk-secret', baseURL: 'http://127.0.0.1:1/v1' }],
    ['a function that returns a key', { apiKey: () => Promise.resolve('sk-secret') }],
    [
      'a header that contains a key',
      { headers: { Authorization: 'Bearer s' }, baseURL: 'http://127.0.0.1:1/v1' },
    ],
  ])('%s is refused by run(), naming dangerouslyAllowBrowser', (_what, options) => {
    pretendBrowser()
    expect(() => agentOf(options).run('Hi.')).toThrow(
      expect.objectContaining({
        name: 'ConfigError',
        code: 'browser_key',
        subject: 'dangerouslyAllowBrowser',
        message: expect.stringMatching(/dangerouslyAllowBrowser: true/),
      }),
    )
  })

  it('without https, runs still have ids', async () => {
    const rehearsal = await start({ turns: [{ text: 'Hello.' }] })
    // Inherited from the prototype.
    Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true })
    try {
      const { state, runId } = await agentOf({ baseURL: rehearsal.url }).run('Hi.').result
      expect(state).toBe('COMPLETED')
      expect(runId).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    } finally {
      Reflect.deleteProperty(crypto, 'randomUUID')
    }
  })

  it('a custom address needs no permission and receives the key', async () => {
    const rehearsal = await start({ turns: [{ text: 'Hello.' }], onExhausted: 'loop' })
    pretendBrowser()
    const keyless = await agentOf({ baseURL: rehearsal.url }).run('Hi.').result
    expect(keyless).toMatchObject({ state: 'COMPLETED', output: 'Hello.' })
    const risky = { baseURL: rehearsal.url, apiKey: 'none', dangerouslyAllowBrowser: true }
    expect(await agentOf(risky).run('Hi.').result).toMatchObject({ state: 'COMPLETED' })
  })
})
