import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { z } from 'zod'
import { createAgent, defineTool, memoryStore, openaiChat, type SessionStore } from '../../../src/index.js'
import { startRehearsal } from '../../../src/rehearsal/index.js'
import { exportSession } from '../../../src/studio/export-session.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

/** Markup and control characters that could execute or hide text, short enough for a tag and a name. */
const hostile =
  '</text></script><script>window.hit=1</script><img src=x onerror="window.hit=2"><svg onload="window.hit=3">[x](javascript:window.hit=4) \u202eevil\u2066 \u001b[31mred\u0007 \u009b2J'

export function describeInert(): void {
  describe('a session with hostile text in every field', () => {
    let studio: Studio
    let store: SessionStore
    let page: Page
    let base: string
    let fork: string
    const faults: string[] = []
    const close: (() => Promise<void>)[] = []

    beforeAll(async () => {
      store = memoryStore()
      const call = (id: string, name: string) => ({ id, name, arguments: { [hostile]: hostile } })
      const rehearsal = await startRehearsal({
        turns: [
          {
            text: hostile,
            reasoning: hostile,
            toolCalls: [call('a', 'say'), call('b', 'fail'), call('c', hostile)],
          },
          { text: hostile, toolCalls: [call('d', 'ask')] },
          { status: 400, error: { message: hostile, code: hostile, type: hostile } },
        ],
      })
      close.push(() => rehearsal.close())
      const tool = (name: string, execute: () => string) =>
        defineTool({
          name,
          description: hostile,
          input: z.record(z.string(), z.string()),
          needsApproval: name === 'ask',
          execute,
        })
      const agent = createAgent({
        model: openaiChat({ model: 'gpt-5-mini', baseURL: rehearsal.url, provider: 'openai' }),
        store,
        instructions: hostile,
        tools: [
          tool('say', () => hostile),
          tool('fail', () => {
            throw new Error(hostile)
          }),
          tool('ask', () => hostile),
        ],
      })
      const tags = { [hostile.slice(-64)]: hostile.slice(0, 200) }
      const { pending = [] } = await agent.run(hostile, { session: 'inert', tags }).result
      fork = await agent.fork('inert', 2, { edit: { message: 'm1', content: `Once more: ${hostile}` } })
      const run = await agent.resume('inert')
      for (const one of pending) run.reject(one, hostile)
      await run.result
      studio = await startStudio({ store, agent })
      page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
      page.on('pageerror', ({ message }) => faults.push(message))
      page.on('console', (message) => {
        if (message.type() === 'error') faults.push(message.text())
      })
      page.on('request', (request) => {
        if (!/^(?:about|data|blob|file):|^http:\/\/127\.0\.0\.1:/.test(request.url()))
          faults.push(request.url())
      })
      await page.goto(studio.url)
      await page.waitForSelector('.session')
      base = page.url().replace(/#.*/, '')
    })

    afterAll(async () => {
      await page.close()
      await studio.close()
      await Promise.all(close.map((end) => end()))
    })

    /** The text neither executes nor links, and each of its characters is visible. */
    async function expectInert(): Promise<void> {
      const found = await page.evaluate(() => {
        const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
        const elements = [...document.querySelectorAll('*')]
        const lines = ['title', 'aria-label', 'alt', 'aria-valuetext']
        return {
          hit: 'hit' in window,
          alien: elements
            .filter((one) => one.matches('iframe, object, embed, [onerror], [onload], img[src="x"]'))
            .map((one) => one.outerHTML.slice(0, 200)),
          links: [...document.querySelectorAll('[href]')]
            .map((one) => one.getAttribute('href') ?? '')
            .filter((href) => /^\s*(?:javascript|vbscript|data:text)/i.test(href)),
          texts: [
            ...elements.flatMap((one) => lines.map((name) => one.getAttribute(name) ?? '')),
            ...elements.flatMap((one) =>
              one.matches('script, style')
                ? []
                : [...one.childNodes].flatMap((node) => (node.nodeType === 3 ? [node.nodeValue ?? ''] : [])),
            ),
            document.title,
          ]
            .filter((text) => unseen.test(text))
            .map((text) => JSON.stringify(text.slice(0, 200))),
        }
      })
      expect(found).toEqual({ hit: false, alien: [], links: [], texts: [] })
      expect(faults).toEqual([])
    }

    it('is inert in the list, its filters and the comparison', async () => {
      await page.goto(base)
      await page.waitForSelector('.session')
      await page.locator('.filters summary').click()
      await expectInert()
      await page.goto(`${base}#/compare/inert/${fork}`)
      await page.waitForSelector('.outcome')
      await expectInert()
    })

    it('is inert on its page: verdict, steps, timeline, tabs, cards and requests', async () => {
      await page.goto(`${base}#/session/inert`)
      await page.waitForSelector('.panel .message')
      await expectInert()
      for (const bar of await page.locator('.lane .bar').all()) {
        await bar.hover()
        await expectInert()
      }
      for (const key of ['2', '3', '4', '5', '1']) {
        await page.keyboard.press(key)
        await expectInert()
      }
      const { length } = await store.read('inert')
      for (let seq = 1; seq <= length; seq += 4) {
        await page.goto(`${base}#/session/inert/${seq}`)
        await page.waitForSelector(`.slider input[aria-valuetext^="Record ${seq} "]`)
        await expectInert()
      }
      await page.locator('.message .edit').first().click()
      await page.waitForSelector('.fork')
      await expectInert()
    })

    it('is inert as a file, and its card and its film are pictures without a script', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'statewright-inert-'))
      try {
        const file = join(folder, 'inert.html')
        await writeFile(file, await exportSession(store, 'inert'))
        await page.goto(pathToFileURL(file).href)
        await page.waitForSelector('.panel .message')
        await expectInert()
        for (const form of ['card', 'film'] as const) {
          const picture = join(folder, `${form}.svg`)
          await writeFile(picture, await exportSession(store, 'inert', { form }))
          await page.goto(pathToFileURL(picture).href)
          await soon(() => page.evaluate(() => document.documentElement.localName)).toBe('svg')
          await expectInert()
        }
      } finally {
        await rm(folder, { recursive: true })
      }
    })
  })
}
