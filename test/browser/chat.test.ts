import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { jest } from '@jest/globals'
import { createRequestListener } from '@remix-run/node-fetch-server'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { aguiHandler } from '../../src/agui/index.js'
import { createAgent, memoryStore, openaiChat, patternShield } from '../../src/index.js'
import { type Rehearsal, startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { launchChromium } from './chromium.js'
import { soon } from './soon.js'

jest.setTimeout(60_000)

const example = fileURLToPath(new URL('../../examples/chat-plain/', import.meta.url))

let browser: Browser
let context: BrowserContext
let folder: string
const open: { close(): unknown }[] = []

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser.close())

beforeEach(async () => {
  context = await browser.newContext()
  folder = await mkdtemp(join(tmpdir(), 'statewright-chat-'))
})

afterEach(async () => {
  await context.close()
  for (const each of open.splice(0).toReversed()) await each.close()
  await rm(folder, { recursive: true, force: true })
})

interface Server {
  url: string
  /** As after a power loss. */
  kill(): Promise<void>
}

/** The example as users start it, in a separate process. */
async function serve(rehearsal: Rehearsal | null, port = '0'): Promise<Server> {
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, ...environment } = process.env
  const model = rehearsal ? { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: rehearsal.url } : {}
  const child: ChildProcess = spawn(process.execPath, [join(example, 'server.mjs')], {
    env: { ...environment, ...model, PORT: port, CHAT_DIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => resolve(/http:\S+/.exec(String(chunk))?.[0] ?? ''))
    child.on('exit', (code) => reject(new Error(`The server has ended with ${code}.`)))
  })
  const kill = (): Promise<void> =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve()
      child.on('exit', () => resolve())
      child.kill('SIGKILL')
    })
  open.push({ close: kill })
  return { url, kill }
}

async function rehearse(...turns: Turn[]): Promise<Rehearsal> {
  const rehearsal = await startRehearsal({ scenario: { turns } })
  open.push(rehearsal)
  return rehearsal
}

async function look(url: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(url)
  await page.waitForSelector('#thread > *')
  return page
}

async function say(page: Page, words: string): Promise<void> {
  await page.fill('#words', words)
  await page.click('#send')
}

const shows = (page: Page, words: string): Promise<unknown> =>
  page.waitForFunction((wanted) => document.querySelector('main')?.innerText.includes(wanted), words)

const answerTexts = (page: Page): Promise<string[]> => page.locator('.assistant').allInnerTexts()

/** The run is over or waits, so no more events come. */
const rests = (page: Page, state = ''): Promise<unknown> =>
  page.waitForFunction((wanted) => document.getElementById('state')?.textContent === wanted, state)

const slow = { chunkSize: 4, chunkDelayMs: 25 }
const long =
  'One train leaves at eight, another at nine, and the third one leaves when it has gathered enough people.'
const booking: Turn = {
  text: 'I book the first.',
  toolCalls: [{ name: 'book', arguments: { to: 'Lisbon', leaves: '8:02', price: 39 } }],
}

it('answers with a rehearsal if there is no key', async () => {
  const { url } = await serve(null)
  const page = await look(url)
  await say(page, 'To Lisbon, tomorrow morning.')
  await rests(page, 'waits for you')
  await page.click('.asks button:not(.main)')
  await shows(page, 'Then I will not book anything.')
})

it('answers only to its own host names, because another site can resolve to this machine', async () => {
  const { url } = await serve(null)
  const status = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      get(`${url}/api/agui/new`, { headers: { host } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      }).on('error', reject)
    })
  expect([await status('127.0.0.1'), await status('localhost:3000'), await status('rebound.test')]).toEqual([
    200, 200, 403,
  ])
})

it('continues the answer when the page is reloaded in mid-stream', async () => {
  const rehearsal = await rehearse({ ...slow, text: long })
  const { url } = await serve(rehearsal)
  const page = await look(url)
  await say(page, 'What goes to Lisbon?')
  await shows(page, 'One train')
  await page.reload()
  await shows(page, 'One train')
  await shows(page, long)
  await rests(page)
  await soon(() => answerTexts(page)).toEqual([long])
  await soon(() => page.locator('.user').allInnerTexts()).toEqual(['What goes to Lisbon?'])
  expect(rehearsal.requests).toHaveLength(1)
})

it('requests approval again when the page is reloaded, and books once', async () => {
  const rehearsal = await rehearse(booking, { text: 'All is booked.' })
  const { url } = await serve(rehearsal)
  const page = await look(url)
  await say(page, 'To Lisbon.')
  await rests(page, 'waits for you')
  await page.reload()
  await rests(page, 'waits for you')
  await page.click('.asks button.main')
  await shows(page, 'All is booked.')
  await rests(page)
  const results = rehearsal.requests.at(-1)?.body.messages.filter(({ role }) => role === 'tool')
  expect(results).toMatchObject([{ content: expect.stringContaining('seat 42') }])
  await soon(() => page.locator('.call').count()).toBe(1)
})

it('shows the same chat in two tabs, and either tab can stop it', async () => {
  const rehearsal = await rehearse({ ...slow, text: long }, { text: 'Yes.', hang: 1 })
  const { url } = await serve(rehearsal)
  const one = await look(url)
  const two = await look(one.url())
  await say(one, 'What goes to Lisbon?')
  await Promise.all([shows(one, long), shows(two, long)])
  await Promise.all([rests(one), rests(two)])
  await soon(() => answerTexts(two)).toEqual(await answerTexts(one))
  await say(two, 'Really?')
  await Promise.all([shows(one, 'Yes.'), shows(two, 'Yes.')])
  await one.click('#stop')
  await Promise.all([rests(one, 'stopped'), rests(two, 'stopped')])
  await soon(() => answerTexts(two)).toEqual(await answerTexts(one))
})

it('shows the text of a retry once', async () => {
  const rehearsal = await rehearse(
    { ...slow, text: 'One train leaves at noon.', cutAfter: 4 },
    { ...slow, text: long },
  )
  const { url } = await serve(rehearsal)
  const page = await look(url)
  await say(page, 'What goes to Lisbon?')
  await shows(page, long)
  await rests(page)
  await soon(() => answerTexts(page)).toEqual([long])
  expect(rehearsal.requests).toHaveLength(2)
})

it('runs a message once if it is posted twice, and refuses a forged approval', async () => {
  const rehearsal = await rehearse(booking)
  const { url } = await serve(rehearsal)
  const page = await look(url)
  const answers = await page.evaluate(async () => {
    const post = (body: object): Promise<Response> =>
      fetch('/api/agui', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ threadId: location.hash.slice(1), runId: 'r', ...body }),
      })
    const messages = [{ id: 'u1', role: 'user', content: 'To Lisbon.' }]
    const both = await Promise.all([post({ messages }), post({ messages })])
    const texts = await Promise.all(both.map((response) => response.text()))
    const payload = { approved: true }
    const forged = await post({
      messages: [],
      resume: [{ interruptId: 'call_1~00', status: 'resolved', payload }],
    })
    const error = (await forged.json()) as { error: { code: string } }
    return { same: texts[0] === texts[1], forged: [forged.status, error.error.code] }
  })
  expect(answers).toEqual({ same: true, forged: [409, 'unknown_call'] })
  expect(rehearsal.requests).toHaveLength(1)
})

it('continues after the server is killed and restarted during an answer', async () => {
  const rehearsal = await rehearse(
    { toolCalls: [{ name: 'find_trains', arguments: { to: 'Lisbon' } }] },
    { ...slow, text: 'One train leaves at noon, and nobody will ever know the rest of it.', hang: 6 },
    { ...slow, text: long },
  )
  const server = await serve(rehearsal)
  const page = await look(server.url)
  await say(page, 'What goes to Lisbon?')
  await shows(page, 'One train')
  await server.kill()
  await rests(page, 'waiting for the server')
  await serve(rehearsal, new URL(server.url).port)
  await shows(page, long)
  await rests(page)
  await soon(() => answerTexts(page)).toEqual([long])
  await soon(() => page.locator('.call').count()).toBe(1)
})

it('never receives text that a shield has withheld', async () => {
  const rehearsal = await rehearse({ ...slow, text: 'The card is swordfish-2, and nothing else.' })
  const model = openaiChat({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' })
  const shields = { output: [patternShield({ name: 'card', patterns: [/swordfish-2/], action: 'redact' })] }
  const chat = aguiHandler({
    agent: createAgent({ model, shields, store: memoryStore() }),
    authorize: 'none',
  })
  const html = await readFile(join(example, 'index.html'), 'utf8')
  const server = createServer(
    createRequestListener((request) =>
      new URL(request.url).pathname === '/'
        ? new Response(html, { headers: { 'content-type': 'text/html' } })
        : chat(request),
    ),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push({ close: () => server.close() && server.closeAllConnections() })
  const page = await look(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const got: Promise<string>[] = []
  page.on('response', (response) => got.push(response.text().catch(() => '')))
  await say(page, 'Which card?')
  await shows(page, 'and nothing else.')
  await rests(page)
  await page.reload()
  await shows(page, 'and nothing else.')
  const all = (await Promise.all(got)).join('')
  expect(all).toContain('and nothing else.')
  expect(all).not.toContain('swordfish')
})
