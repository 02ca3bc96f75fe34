import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { jest } from '@jest/globals'
import type { Browser, Frame, Page } from 'playwright-core'
import { z } from 'zod'
import { createAgent, defineTool, openaiChat } from '../../src/index.js'
import { startInspector } from '../../src/inspect/node.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { chartOf, toOverviewSvg } from '../../src/diagram/index.js'
import { cli, folder, removeFolders } from '../cli/support.js'
import { launchChromium } from './chromium.js'

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
  /** What the fake editor was told. */
  var told: Told[]
}

/** A page that says hello as Stately's editor does, and keeps what it is told. */
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

/** An agent that reads once and answers, on a store of its own. */
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

/** The command, until the test is over; its address. */
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

/** What the frame has been told once that many snapshots are among it. */
async function toldTo(page: Page, snapshots: number): Promise<Told[]> {
  const frame = await frameOf(page)
  await frame.waitForFunction(
    (count) => told.filter(({ type }) => type === '@statelyai.inspectSnapshot').length >= count,
    snapshots,
  )
  return frame.evaluate(() => told)
}

/** Time goes on in the page where the test says so. */
async function stopClock(page: Page): Promise<void> {
  await page.clock.install({ time: 0 })
  await page.clock.pauseAt(1000)
}

/** Paths of the states in a value: `RUNNING`, `RUNNING.asking`. */
function pathsOf(value: unknown, above = ''): string[] {
  if (typeof value === 'string') return [above + value]
  return Object.entries((value ?? {}) as object).flatMap(([name, inner]) => [
    above + name,
    ...pathsOf(inner, `${above}${name}.`),
  ])
}

const marked = (page: Page) =>
  page
    .locator('[data-state].active')
    .evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset.state))

async function goTo(page: Page, index: number): Promise<void> {
  await page.locator('#at').fill(String(index))
}

describe("a stored session in Stately's editor", () => {
  it('is told once the editor is there: the machine, then one snapshot a record', async () => {
    const { agent, url, store } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page, faults, hosts } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', editor.url),
    )
    await toldTo(page, 1)
    const records = store.read('work')
    const last = records.length
    await page.waitForFunction(
      (count) => (document.getElementById('at') as HTMLInputElement).max === count,
      String(last - 2),
    )
    for (let seq = 2; seq <= last; seq++) await goTo(page, seq - 2)
    const [init, ...rest] = await toldTo(page, last - 1)
    expect(init).toMatchObject({ type: '@statelyai.init', mode: 'inspecting', readOnly: true })
    expect(init?.machine).toMatchObject({ id: 'agent', states: { RUNNING: {}, COMPLETED: {} } })
    const values = rest.map(({ snapshot }) => snapshot?.value)
    for (let seq = 2; seq <= last; seq++) {
      const { snapshot } = await agent.replay('work', { to: seq })
      expect(values).toContainEqual(snapshot?.value)
    }
    expect(rest.at(-1)).toMatchObject({
      snapshot: {
        value: 'COMPLETED',
        status: 'done',
        context: { state: 'COMPLETED', reason: 'end_turn', steps: 2 },
      },
      event: { type: 'xstate.done.actor.model' },
    })
    expect(await page.locator('#why').isVisible()).toBe(false)
    expect(faults).toEqual([])
    expect([...hosts]).toEqual(['127.0.0.1'])
  })

  it('plays from its beginning once the editor is there', async () => {
    const { agent, url, store } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', `${editor.url}?silent`),
      async (page) => {
        await page.emulateMedia({ reducedMotion: 'no-preference' })
        await stopClock(page)
      },
    )
    const count = store.read('work').length - 1
    await page.locator(`#at[max="${count - 1}"]`).waitFor()
    await page.clock.runFor(3000)
    expect(await page.locator('#at').inputValue()).toBe('0')
    const frame = await frameOf(page)
    await frame.evaluate(() => parent.postMessage({ type: '@statelyai.ready' }, '*'))
    await toldTo(page, 1)
    await page.clock.runFor(500 * (count + 2))
    const [, ...snapshots] = await toldTo(page, count)
    const values = await Promise.all(
      Array.from(
        { length: count },
        async (_, i) => (await agent.replay('work', { to: i + 2 })).snapshot?.value,
      ),
    )
    expect(snapshots.map(({ snapshot }) => snapshot?.value)).toEqual(values)
    expect(await page.locator('#play').textContent()).toBe('Play')
  })

  it('has no text of anybody in it, unless it is asked for; and never a secret', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const args = ['--session', 'work', '--store', url, '--editor', editor.url]
    const texts = async (...more: string[]): Promise<string> => {
      const { page } = await openPage(await stately(...args, ...more))
      await toldTo(page, 1)
      const last = Number(await page.locator('#at').getAttribute('max'))
      for (let i = 0; i <= last; i++) await goTo(page, i)
      await page.waitForFunction(() => document.getElementById('where')?.textContent === 'COMPLETED')
      return JSON.stringify((await toldTo(page, last + 1)).slice(1))
    }
    const few = await texts()
    expect(few).not.toMatch(/blue|What is it|ball|a1B2/)
    const whole = await texts('--context')
    expect(whole).toMatch(/It is blue\./)
    expect(whole).toMatch(/What is it\?/)
    expect(whole).not.toContain('a1B2')
  })

  it('goes on while somebody writes to it', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page } = await openPage(await stately('--live', '--store', url, '--editor', editor.url))
    await page.locator('#where', { hasText: 'COMPLETED' }).waitFor()
    const before = Number(await page.locator('#at').inputValue())
    await agent.run('And its form?', { session: 'work' }).result
    await page.waitForFunction(
      (count) =>
        Number((document.getElementById('at') as HTMLInputElement).value) > count &&
        document.getElementById('where')?.textContent === 'COMPLETED',
      before,
    )
    const after = Number(await page.locator('#at').inputValue())
    const values = (await toldTo(page, after - before + 1)).map(({ snapshot }) =>
      JSON.stringify(snapshot?.value),
    )
    expect(values.filter((value) => value === '"COMPLETED"').length).toBeGreaterThan(1)
    // Another session is shown as soon as it is written to.
    await agent.run('And its weight?', { session: 'other' }).result.catch(() => undefined)
    await page.locator('#title', { hasText: 'other' }).waitFor()
  })

  it('is shown in our own chart where the editor does not answer, and goes back when it does', async () => {
    const { agent, url, store } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page, faults } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', `${editor.url}?silent`),
      stopClock,
    )
    await page.locator('#seq', { hasText: ' of ' }).waitFor()
    await page.clock.runFor(8900)
    expect(await page.locator('#why').isVisible()).toBe(false)
    await page.clock.runFor(200)
    await page
      .locator('#why', { hasText: /Stately's editor \(http.*\) has not answered for 9 seconds/ })
      .waitFor()
    await page.locator('#chart svg').waitFor()
    expect(await page.locator('iframe').isVisible()).toBe(false)
    const records = store.read('work')
    for (let seq = 2; seq <= records.length; seq++) {
      await goTo(page, seq - 2)
      const { snapshot } = await agent.replay('work', { to: seq })
      expect([seq, await marked(page)]).toEqual([seq, pathsOf(snapshot?.value)])
    }
    const frame = await frameOf(page)
    expect(await frame.evaluate(() => told)).toEqual([])
    await frame.evaluate(() => parent.postMessage({ type: '@statelyai.ready' }, '*'))
    await page.locator('#why').waitFor({ state: 'hidden' })
    expect((await toldTo(page, 1))[0]?.type).toBe('@statelyai.init')
    expect(faults).toEqual([])
  })

  it('listens to nobody but the frame', async () => {
    const { agent, url } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const { page } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', `${editor.url}?silent`),
    )
    await page.evaluate(() => window.postMessage({ type: '@statelyai.ready' }, '*'))
    await page.locator('#seq', { hasText: ' of ' }).waitFor()
    await goTo(page, 1)
    expect(await (await frameOf(page)).evaluate(() => told)).toEqual([])
  })

  it('says what is wrong with a log, and shows what stands before it', async () => {
    const { agent, url, store } = await reader()
    await agent.run('What is it?', { session: 'work' }).result
    const lease = store.acquire('work', { holder: 'test', ttlMs: 1000 })
    const head = store.read('work').length
    store.append(lease, [{ seq: head + 1, at: 0, type: 'event', data: '{}', check: 'wrong' }])
    store.release(lease)
    const { page } = await openPage(
      await stately('--session', 'work', '--store', url, '--editor', editor.url),
    )
    await page.locator('#problem', { hasText: `record ${head + 1} is damaged` }).waitFor()
    expect((await toldTo(page, 1)).length).toBeGreaterThan(1)
  })
})

describe("a run in Stately's inspector", () => {
  const inspectorAt = (page: Page, html: string | null) =>
    page.route('https://stately.ai/**', (route) =>
      html === null ? route.abort() : route.fulfill({ contentType: 'text/html', body: html }),
    )

  it.each(['drawn', 'as a list'])(
    'is shown in our own chart, %s, where stately.ai does not answer',
    async (how) => {
      const { agent } = await reader()
      const chart = how === 'drawn' ? await toOverviewSvg(chartOf(agent.machine)) : undefined
      const inspector = await startInspector({ chart })
      ends.push(() => inspector.close())
      const { page, faults } = await openPage(inspector.url, async (page) => {
        await inspectorAt(page, null)
        await stopClock(page)
      })
      await inspector.viewed
      await agent.run('What is it?', { inspect: inspector.inspect }).result
      await page.clock.runFor(9100)
      await page
        .locator('#why', { hasText: "Stately's inspector (https://stately.ai) has not answered" })
        .waitFor()
      await page.locator('.active[data-state="COMPLETED"]').waitFor()
      expect(await page.locator('header').isVisible()).toBe(true)
      await goTo(page, 0)
      expect(await marked(page)).toEqual(expect.arrayContaining(['RUNNING']))
      expect(await page.locator('#chart svg').count()).toBe(how === 'drawn' ? 1 : 0)
      expect(faults).toEqual([])
    },
  )

  it('is handed to the inspector alone where it answers', async () => {
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
    expect(await page.locator('header').isVisible()).toBe(false)
  })
})
