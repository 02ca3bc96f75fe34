import { jest } from '@jest/globals'
import type { Browser, Page } from 'playwright-core'
import {
  type Rehearsal,
  type RehearsalOptions,
  type Scenario,
  startRehearsal,
} from '../../src/rehearsal/index.js'
import { launchChromium } from './chromium.js'
import { openSite, type Site } from './site.js'

jest.setTimeout(60_000)

let browser: Browser
let site: Site
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  site = await openSite()
  browser = await launchChromium()
})

afterAll(async () => {
  await browser.close()
  await site.close()
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()))
})

/** A page of that host with the app in it, and its uncaught errors. */
async function openPage(host = '127.0.0.1'): Promise<{ page: Page; faults: string[]; requests: string[] }> {
  const page = await browser.newPage()
  open.push(page)
  const faults: string[] = []
  const requests: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('request', (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`))
  await page.goto(`http://${host}:${site.port}/`)
  await page.waitForFunction(() => 'app' in globalThis)
  return { page, faults, requests }
}

async function rehearse(scenario: Scenario | RehearsalOptions): Promise<Rehearsal> {
  const rehearsal = await startRehearsal(scenario)
  open.push(rehearsal)
  return rehearsal
}

describe('an agent in a page', () => {
  it('streams, calls its tools and waits out a rate limit, without a key', async () => {
    const rehearsal = await rehearse({
      turns: [
        { status: 429, retryAfterMs: 1 },
        { toolCalls: [{ name: 'add', arguments: { a: 19, b: 23 } }] },
        { text: '19 + 23 is 42.', chunkSize: 3, expect: { toolResultsInclude: ['42'] } },
      ],
    })
    const { page, faults } = await openPage()
    const { result, text, types, delays } = await page.evaluate(async (baseURL) => {
      const { createAgent, defineTool, openaiChat, z } = app
      const agent = createAgent({
        model: openaiChat({ model: 'm', baseURL }),
        tools: [
          defineTool({
            name: 'add',
            description: 'Adds.',
            input: z.object({ a: z.number(), b: z.number() }),
            execute: ({ a, b }) => a + b,
          }),
        ],
      })
      const run = agent.run('What is 19 + 23?')
      const types: string[] = []
      const delays: number[] = []
      let text = ''
      for await (const event of run) {
        types.push(event.type)
        if (event.type === 'stream_chunk') text += event.text
        if (event.type === 'retry') delays.push(event.delayMs)
      }
      return { result: await run.result, text, types, delays }
    }, rehearsal.url)
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: '19 + 23 is 42.' })
    expect(text).toBe('19 + 23 is 42.')
    // The header is readable across origins.
    expect(delays).toEqual([1])
    expect(types).toEqual(expect.arrayContaining(['tool_call', 'tool_result', 'retry', 'run_ended']))
    expect(rehearsal.requests.every(({ headers }) => headers.authorization === 'Bearer no-key-needed')).toBe(
      true,
    )
    expect(faults).toEqual([])
  })

  it('stops a stream at once, keeps the received text, and continues in another run of the session', async () => {
    const rehearsal = await rehearse({
      turns: [{ text: 'One two three', chunkSize: 4, hang: 2 }, { text: 'Four.' }],
    })
    const { page, faults } = await openPage()
    const results = await page.evaluate(async (baseURL) => {
      const { createAgent, memoryStore, openaiChat } = app
      const agent = createAgent({ model: openaiChat({ model: 'm', baseURL }), store: memoryStore() })
      const run = agent.run('Count.', { session: 's' })
      for await (const event of run) if (event.type === 'stream_chunk' && event.text !== '') run.cancel()
      return [await run.result, await agent.run('And on.', { session: 's' }).result]
    }, rehearsal.url)
    expect(results).toMatchObject([{ state: 'CANCELLED' }, { state: 'COMPLETED', output: 'Four.' }])
    expect(results[0]?.messages.at(-1)?.content).toMatch(/^One /)
    expect(faults).toEqual([])
  })

  it('waits for a person', async () => {
    const rehearsal = await rehearse({
      turns: [{ toolCalls: [{ name: 'pay', arguments: {} }] }, { text: 'Paid.' }],
    })
    const { page } = await openPage()
    const states = await page.evaluate(async (baseURL) => {
      const { createAgent, defineTool, openaiChat, z } = app
      const pay = defineTool({
        name: 'pay',
        description: 'Pays.',
        input: z.object({}),
        needsApproval: true,
        execute: () => 'ok',
      })
      const run = createAgent({ model: openaiChat({ model: 'm', baseURL }), tools: [pay] }).run('Pay.')
      const first = await run.result
      for (const { callId } of first.pending ?? []) run.approve(callId)
      return [first.state, (await run.result).state]
    }, rehearsal.url)
    expect(states).toEqual(['WAITING_FOR_INPUT', 'COMPLETED'])
  })

  it('refuses to hold a key unless an option allows it', async () => {
    const rehearsal = await rehearse({ turns: [{ text: 'Hi.' }] })
    const { page } = await openPage()
    const [refusal, state] = await page.evaluate(async (baseURL) => {
      const { ConfigError, createAgent, openaiChat } = app
      const ask = (dangerouslyAllowBrowser?: boolean) =>
        createAgent({
          model: openaiChat({ model: 'm', baseURL, apiKey: 'sk-secret', dangerouslyAllowBrowser }),
        }).run('Hi.')
      let refusal = ''
      try {
        ask()
      } catch (error) {
        if (error instanceof ConfigError) refusal = `${error.code}: ${error.message}`
      }
      return [refusal, (await ask(true).result).state]
    }, rehearsal.url)
    expect(refusal).toMatch(/^browser_key: .*dangerouslyAllowBrowser: true/)
    expect(state).toBe('COMPLETED')
    expect(rehearsal.requests).toHaveLength(1)
  })
})

it('an agent also runs in a worker', async () => {
  const rehearsal = await rehearse({ turns: [{ text: 'Hi.' }] })
  const { page } = await openPage()
  const result = await page.evaluate(
    (baseURL) =>
      new Promise((resolve, reject) => {
        const worker = new Worker('/worker.js', { type: 'module' })
        worker.addEventListener('message', ({ data }) => resolve(data))
        worker.addEventListener('error', reject)
        // oxlint-disable-next-line require-post-message-target-origin -- a worker has no other
        worker.postMessage(baseURL)
      }),
    rehearsal.url,
  )
  expect(result).toEqual({ state: 'COMPLETED', output: 'Hi.' })
})

describe('the download of a page', () => {
  const ask = async (page: Page, baseURL: string, prices: null | undefined) =>
    page.evaluate(
      async ({ baseURL, prices }) => {
        const { createAgent, openaiChat } = app
        const model = openaiChat({ model: 'gpt-5-mini', provider: 'openai', baseURL })
        const { usage } = await createAgent({ model, ...(prices === null && { prices }) }).run('Hi.').result
        return usage.cost
      },
      { baseURL, prices },
    )

  it('loads the run code when a run starts, and the prices after the request is sent', async () => {
    const rehearsal = await rehearse({ turns: [{ text: 'Hi.', usage: { input: 1_000, output: 1_000 } }] })
    const { page, requests } = await openPage()
    const atFirst = requests.length
    expect(await ask(page, rehearsal.url, undefined)).toBeGreaterThan(0)
    const later = requests.slice(atFirst)
    const sent = later.indexOf('POST /v1/chat/completions')
    expect(later.slice(0, sent).some((path) => path.startsWith('GET /openai-'))).toBe(true)
    expect(later.slice(sent).filter((path) => path.startsWith('GET /genai-catalog-'))).toHaveLength(1)
    expect(later.slice(0, sent).filter((path) => path.startsWith('GET /genai-catalog-'))).toHaveLength(0)
  })

  it('contains no prices if the agent reports no costs', async () => {
    const rehearsal = await rehearse({ turns: [{ text: 'Hi.' }] })
    const { page, requests } = await openPage()
    expect(await ask(page, rehearsal.url, null)).toBeNull()
    expect(requests.filter((path) => path.startsWith('GET /genai-catalog-'))).toEqual([])
  })
})

describe('a rehearsal', () => {
  it('refuses pages of other origins, except those it names', async () => {
    const closed = await rehearse({ turns: [{ text: 'Hi.' }] })
    const origins = [`http://friend.example:${site.port}`]
    const named = await rehearse({ scenario: { turns: [{ text: 'Hi.' }] }, origins })
    const { page } = await openPage('friend.example')
    const codes = await page.evaluate(
      async (urls) => {
        const { createAgent, openaiChat } = app
        const results = urls.map((baseURL) => {
          const model = openaiChat({ model: 'm', baseURL })
          return createAgent({ model, retry: { maxAttempts: 1 } }).run('Hi.').result
        })
        return (await Promise.all(results)).map(({ state, error }) => error?.code ?? state)
      },
      [closed.url, named.url],
    )
    expect(codes).toEqual(['connection', 'COMPLETED'])
    expect(closed.requests).toEqual([])
  })
})
