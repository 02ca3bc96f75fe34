import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { jest } from '@jest/globals'
import type { Browser, Frame, Page } from 'playwright-core'
import { z } from 'zod'
import { createAgent, defineTool, openaiChat } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { startInspector } from '../../src/studio/index.js'
import { cli, folder, removeFolders } from '../cli/support.js'
import { launchChromium } from './chromium.js'
import { soon } from './soon.js'

jest.setTimeout(60_000)

let browser: Browser
let editor: { url: string; close(): Promise<void> }
const ends: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  editor = await fakeEditor()
  browser = await launchChromium()
})

afterAll(async () => {
  await browser.close()
  await editor.close()
})

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
  await removeFolders()
})

interface Told {
  type: string
  machine?: { id: string; states: object }
  mode?: string
  readOnly?: boolean
  snapshot?: { value: unknown; status: string; context: Record<string, unknown> }
  event?: { type: string }
}

declare global {
  /** The messages that the fake editor received. */
  var told: Told[]
}

/** A page that sends the handshake of Stately's editor and records its messages. */
async function fakeEditor(): Promise<typeof editor> {
  const html = `<!doctype html><script>
    globalThis.told = []
    addEventListener('message', ({ data }) => told.push(data))
    if (!location.search.includes('silent')) parent.postMessage({ type: '@statelyai.ready' }, '*')
  </script>`
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(html),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/embed`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const secret = `sk-${'a1B2'.repeat(8)}`

/** An agent that reads once and answers, with a separate store. */
async function reader() {
  const url = `file:${await folder({})}`
  const rehearsal = await startRehearsal({
    turns: [
      { toolCalls: [{ name: 'look', arguments: { key: secret } }] },
      { text: 'It is blue.' },
      { text: 'And it is round.' },
    ],
  })
  const store = fileStore({ dir: url.slice('file:'.length) })
  ends.push(
    () => rehearsal.close(),
    async () => store.close(),
  )
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ key: z.string() }),
    execute: () => 'A blue ball.',
  })
  const agent = createAgent({
    model: openaiChat({ model: 'm', baseURL: rehearsal.url }),
    tools: [look],
    store,
  })
  return { agent, url, store }
}

/** Starts the command for the test and returns its address. */
async function stately(...args: string[]): Promise<string> {
  const interrupt = new AbortController()
  let ended: ReturnType<typeof cli> | undefined
  const url = await new Promise<string>((resolve, reject) => {
    ended = cli(['stately', ...args], { signal: interrupt.signal, onOutput: (text) => resolve(text.trim()) })
    ended.then(({ err }) => reject(new Error(err)), reject)
  })
  ends.push(async () => {
    interrupt.abort()
    expect((await ended)?.code).toBe(0)
  })
  return url
}

async function openPage(url: string, prepare: (page: Page) => Promise<unknown> = async () => undefined) {
  const page = await browser.newPage({ reducedMotion: 'reduce' })
  ends.push(() => page.close())
  const faults: string[] = []
  const hosts = new Set<string>()
  page.on('pageerror', ({ message }) => faults.push(message))
  page.on('request', (request) => hosts.add(new URL(request.url()).hostname))
  await prepare(page)
  await page.goto(url)
  return { page, faults, hosts }
}

async function frameOf(page: Page): Promise<Frame> {
  const element = await page.locator('iframe').elementHandle()
  const frame = await element?.contentFrame()
  if (!frame) throw new Error('There is no frame.')
  return frame
}

/** The frame's messages after this many snapshots. */
async function toldTo(page: Page, snapshots: number): Promise<Told[]> {
  const frame = await frameOf(page)
  await frame.waitForFunction(
    (count) => told.filter(({ type }) => type === '@statelyai.inspectSnapshot').length >= count,
    snapshots,
  )
  return frame.evaluate(() => told)
}

/** The test controls the page's clock. */
async function stopClock(page: Page): Promise<void> {
  await page.clock.install({ time: 0 })
  await page.clock.pauseAt(1000)
}

/** Steps from the first record to the last. Each reaches the frame before the next. */
async function goThrough(page: Page, count: number): Promise<Told[]> {
  await toldTo(page, 1)
  for (let position = 2; position <= count; position++) {
    await page.locator('body').press('ArrowRight')
    await toldTo(page, position)
  }
  return toldTo(page, count)
}

describe("a stored session in Stately's editor", () => {
  it('is sent once the editor has loaded: the machine, then one snapshot per viewed record', async () => {
    const { agent, url, store } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page, faults, hosts } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', editor.url),
    )
    await page.locator('.slider input, input[type=range]').first().waitFor()
    // The first record opens the session, so there is no state yet.
    await page.locator('body').press('ArrowRight')
    const last = store.read('work').length
    const [init, ...rest] = await goThrough(page, last - 1)
    expect(init).toMatchObject({ type: '@statelyai.init', mode: 'inspecting', readOnly: true })
    expect(init?.machine).toMatchObject({ id: 'agent', states: { RUNNING: {}, COMPLETED: {} } })
    const values = await Promise.all(
      Array.from(
        { length: last - 1 },
        async (_, i) => (await agent.replay('work', { to: i + 2 })).snapshot?.value,
      ),
    )
    expect(rest.map(({ snapshot }) => snapshot?.value)).toEqual(values)
    expect(rest[0]).toMatchObject({ event: { type: 'xstate.init' }, snapshot: { status: 'active' } })
    expect(rest.at(-1)).toMatchObject({
      snapshot: {
        value: 'COMPLETED',
        status: 'done',
        context: { state: 'COMPLETED', reason: 'end_turn', steps: 2 },
      },
      event: { type: 'xstate.done.actor.model' },
    })
    await soon(() => page.locator('.stately-note').count()).toBe(0)
    expect(faults).toEqual([])
    expect([...hosts]).toEqual(['127.0.0.1'])
  })

  it('contains no text of a session unless the user includes it, and never a secret', async () => {
    const { agent, url, store } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const args = ['--session', 'work', '--store', url, '--editor', editor.url]
    const texts = async (...more: string[]): Promise<string> => {
      const { page } = await openPage(await stately(...args, ...more))
      await page.locator('input[type=range]').first().waitFor()
      await page.locator('body').press('ArrowRight')
      return JSON.stringify((await goThrough(page, store.read('work').length - 1)).slice(1))
    }
    const few = await texts()
    expect(few).not.toMatch(/blue|What is it|ball|a1B2/)
    const whole = await texts('--context')
    expect(whole).toMatch(/It is blue\./)
    expect(whole).toMatch(/What is it\?/)
    expect(whole).not.toContain('a1B2')
  })

  it('follows a run as it writes, then the session that is written next', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page } = await openPage(await stately('--live', '--store', url, '--editor', editor.url))
    await page.locator('.now-path', { hasText: 'COMPLETED' }).waitFor()
    const before = await page.locator('.run-title p', { hasText: 'run 2' }).count()
    expect(before).toBe(0)
    await agent.run('And its form?', { session: 'work' }).result
    await page.locator('.run-title p', { hasText: 'run 2' }).waitFor()
    await (await frameOf(page)).waitForFunction(() =>
      told.some(
        ({ snapshot }) => (snapshot?.context as { state?: string } | undefined)?.state === 'COMPLETED',
      ),
    )
    await agent.run('And its weight?', { session: 'other' }).result.catch(() => undefined)
    await page.locator('h1', { hasText: 'And its weight?' }).waitFor()
  })

  it('is shown in the built-in chart if the editor does not answer, and returns when it does', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page, faults } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', `${editor.url}?silent`),
      (page) => page.clock.install(),
    )
    const note = page.locator('.stately-note')
    // From the start, because the frame shows a browser error if the editor cannot be reached.
    await page.locator('.picture svg').waitFor()
    await soon(() => note.textContent()).toMatch(
      /is loading. Until it responds, the studio shows its own chart.$/,
    )
    await soon(() => page.locator('iframe').isVisible()).toBe(false)
    await page.clock.runFor(9100)
    await soon(() => note.textContent()).toMatch(
      /^Stately's editor \(http.*\) has not responded for 9 seconds/,
    )
    await page.locator('.picture svg').waitFor()
    await soon(() => page.locator('iframe').isVisible()).toBe(false)
    const frame = await frameOf(page)
    await soon(() => frame.evaluate(() => told)).toEqual([])
    await frame.evaluate(() => parent.postMessage({ type: '@statelyai.ready' }, '*'))
    await note.waitFor({ state: 'detached' })
    await page.locator('iframe').waitFor()
    await page.locator('body').press('ArrowRight')
    expect((await toldTo(page, 1))[0]?.type).toBe('@statelyai.init')
    expect(faults).toEqual([])
  })

  it('listens only to the frame', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', `${editor.url}?silent`),
    )
    await page.locator('iframe').waitFor({ state: 'attached' })
    await page.evaluate(() => window.postMessage({ type: '@statelyai.ready' }, '*'))
    await page.locator('body').press('ArrowRight')
    await page.locator('.now-label', { hasText: 'run 1' }).waitFor()
    expect(await (await frameOf(page)).evaluate(() => told)).toEqual([])
  })

  it('can be replaced by the studio’s own chart', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', editor.url),
    )
    await page.locator('iframe').waitFor()
    await page.locator('.chart-bar select').selectOption('whole')
    await page.locator('.picture svg').waitFor()
    await soon(() => page.locator('iframe').count()).toBe(0)
  })
})

describe("a run in Stately's inspector", () => {
  const inspectorAt = (page: Page, html: string | null) =>
    page.route('https://stately.ai/**', (route) =>
      html === null ? route.abort() : route.fulfill({ contentType: 'text/html', body: html }),
    )

  it('suggests an alternative if stately.ai does not answer', async () => {
    const inspector = await startInspector()
    ends.push(() => inspector.close())
    const { page, faults } = await openPage(inspector.url, async (page) => {
      await inspectorAt(page, null)
      await stopClock(page)
    })
    await inspector.viewed
    await page.clock.runFor(8900)
    await soon(() => page.locator('#why').textContent()).toBe('')
    await page.clock.runFor(200)
    await soon(() => page.locator('#why').textContent()).toMatch(
      /^Stately's inspector \(https:\/\/stately\.ai\) has not responded for 9 seconds.*statewright run --studio/,
    )
    expect(faults).toEqual([])
  })

  it('is sent only to the inspector if it answers', async () => {
    const { agent } = await reader()
    const inspector = await startInspector()
    ends.push(() => inspector.close())
    const { page } = await openPage(inspector.url, (page) =>
      inspectorAt(
        page,
        `<script>globalThis.told = []
        addEventListener('message', ({ data }) => told.push(data))
        parent.postMessage({ type: '@statelyai.connected' }, '*')</script>`,
      ),
    )
    await inspector.viewed
    await agent.run('What is it?', { inspect: inspector.inspect }).result
    const frame = await frameOf(page)
    await frame.waitForFunction(() => told.some(({ snapshot }) => snapshot?.value === 'COMPLETED'))
    const [first] = await frame.evaluate(() => told)
    expect(first?.type).toBe('@xstate.actor')
    await soon(() => page.locator('#why').textContent()).toBe('')
  })
})
