import type { Page } from 'playwright-core'
import { z } from 'zod'
import { createAgent, defineTool, memoryStore, openaiChat, toolContent } from '../../../src/index.js'
import { startRehearsal, type Turn } from '../../../src/rehearsal/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

/** A one-pixel picture. */
const point =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const written = `# What I found

The **largest** one is \`/var/log/app.log\`, see [the manual](https://example.com/manual) and read_file or write_file:

| file | size |
| --- | --- |
| app.log | 3 GB |

\`\`\`sh
du -h /var/log
\`\`\`

- [x] looked
- then 1 more

![a point](${point})`

/** Every kind of markup that could act on the page. */
const hostile = `<script>window.hit = 1</script><img src=x onerror="window.hit = 2">
<svg onload="window.hit = 3"><a href="javascript:window.hit = 4">x</a></svg>
[press me](javascript:window.hit=5) [or me](data:text/html,<script>window.hit=6</script>) [or](vbscript:window.hit=7)
[http://bank.example](http://evil.example/) ![](http://evil.example/seen.png) ![](data:image/svg+xml;base64,PHN2Zy8+)
\`\`\`html
<script>window.hit = 8</script>
\`\`\`
access\u202elevel\u2066 \u001b[31mred\u001b[0m \u0007 ${'>'.repeat(60)} deep`

const turns: readonly Turn[] = [
  { text: written, toolCalls: [{ id: 'shot', name: 'take_picture', arguments: {} }] },
  { text: 'It is', finishReason: 'length' },
  { text: ' long.', toolCalls: [{ id: 'dump', name: 'dump', arguments: { of: hostile } }] },
  { text: hostile, reasoning: hostile },
]

export function describeTranscript(): void {
  describe('a transcript', () => {
    let studio: Studio
    let page: Page
    let address: string
    const faults: string[] = []
    const requests: string[] = []
    const close: (() => Promise<void>)[] = []

    beforeAll(async () => {
      const store = memoryStore()
      const rehearsal = await startRehearsal({ turns })
      const agent = createAgent({
        model: openaiChat({ model: 'gpt-5-mini', baseURL: rehearsal.url, provider: 'openai' }),
        store,
        tools: [
          defineTool({
            name: 'take_picture',
            description: 'Takes a picture.',
            input: z.object({}),
            execute: () =>
              toolContent([
                { type: 'text', text: 'Here it is.' },
                { type: 'image', image: point },
              ]),
          }),
          defineTool({
            name: 'dump',
            description: 'Returns much.',
            input: z.object({ of: z.string() }),
            execute: ({ of }) =>
              [of, ...Array.from({ length: 200 }, (_, i) => `line ${i}`), 'the needle'].join('\n'),
          }),
        ],
      })
      const lines = [
        { type: 'text' as const, text: 'What fills *the disk*?' },
        { type: 'image' as const, image: point },
      ]
      await agent.run(lines, { session: 'texts' }).result
      studio = await startStudio({ store, agent })
      page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
      page.on('pageerror', ({ message }) => faults.push(message))
      page.on('console', (message) => {
        if (message.type() === 'error') faults.push(message.text())
      })
      page.on('request', (request) => requests.push(request.url()))
      await page.goto(studio.url)
      await page.waitForSelector('.sessions')
      address = `${page.url().replace(/#.*/, '')}#/session/texts`
      close.push(
        () => page.close(),
        () => studio.close(),
        () => rehearsal.close(),
      )
    })

    afterAll(async () => {
      // In sequence, starting with the page.
      for (const end of close) await end()
    })

    beforeEach(async () => {
      await page.goto('about:blank')
      await page.goto(address)
      await page.waitForSelector('.panel .message')
    })

    afterEach(() => {
      expect(faults).toEqual([])
      expect(requests.filter((url) => !/^(?:about|data):|^http:\/\/127\.0\.0\.1:/.test(url))).toEqual([])
    })

    it('shows Markdown, pictures and code, and the source on demand', async () => {
      const message = page.locator('.message.assistant .markdown').first()
      await soon(() => message.locator('strong').textContent()).toBe('largest')
      expect((await message.locator('td').allTextContents()).map((text) => text.trim())).toEqual([
        'app.log',
        '3 GB',
      ])
      await soon(() => message.locator('pre[data-language=sh]').textContent()).toContain('du -h /var/log')
      await soon(() => message.locator('a').getAttribute('href')).toBe('https://example.com/manual')
      // Underscores in names are not emphasis.
      await soon(() => message.locator('em').count()).toBe(0)
      const pictures = page.locator('.message img')
      await soon(() => pictures.count()).toBe(3)
      expect(
        await pictures.evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth)),
      ).toEqual([1, 1, 1])
      await page.click('text=As written')
      await soon(() => page.locator('.message.assistant .said').first().textContent()).toBe(written)
    })

    it('marks messages of the loop, with their reason', async () => {
      const loop = page.locator('.message.loop')
      await soon(() => loop.count()).toBe(1)
      await soon(() => loop.locator('header').textContent()).toBe(
        'Loopasks for the rest of a truncated answer',
      )
      await soon(() => loop.locator('.edit').count()).toBe(0)
    })

    it('folds a long result, and unfolds it at a match of the search', async () => {
      const result = page.locator('.block.result').last()
      await soon(() => result.textContent()).not.toContain('the needle')
      await result.locator('text=/Show all/').click()
      await soon(() => result.textContent()).toContain('the needle')
      await result.locator('text=Show less').click()
      await page.fill('#find-messages', 'the NEEDLE')
      await page.waitForSelector('.message.found')
      await soon(() => page.locator('.message.found').count()).toBe(1)
      await soon(() => result.textContent()).toContain('the needle')
      await soon(() => page.evaluate(() => [...(CSS.highlights.get('found') ?? [])].length)).toBe(1)
      await page.fill('#find-messages', 'line')
      await page.press('#find-messages', 'Enter')
      await soon(() => page.locator('.transcript-bar output').textContent()).toBe('1 of 1')
      await soon(() => page.locator('.message.current').count()).toBe(1)
      await page.fill('#find-messages', 'nowhere')
      await page.waitForSelector('.transcript-bar output:has-text("0 messages")')
    })

    it('is inert: it runs no script, loads nothing, hides no link, and reverses no letters', async () => {
      for (const details of await page.locator('details.reasoning summary').all()) await details.click()
      for (const button of await page.locator('text=/Show all/').all()) await button.click()
      expect(
        await page.locator('.panel :is(script, svg:not(.drawn), iframe, object, embed, style)').count(),
      ).toBe(0)
      const links = await page
        .locator('.panel a')
        .evaluateAll((all) => all.map((one) => one.getAttribute('href')))
      expect(links.filter((link) => !/^https?:\/\//.test(link ?? ''))).toEqual([])
      // A link's target is next to it. A dead link shows its address.
      await soon(() => page.locator('.address:has-text("evil.example")').count()).toBeGreaterThan(0)
      await soon(() => page.locator('.address:has-text("javascript:")').count()).toBe(1)
      await soon(() => page.locator('.panel img:not([src^="data:image/png"])').count()).toBe(0)
      const shown = (await page.locator('.panel').textContent()) ?? ''
      expect(shown).toContain('access⟨U+202E⟩level⟨U+2066⟩ ⟨U+001B⟩[31mred')
      expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u0007\u001b]/)
      for (const text of await page.locator('.panel a, .panel .address').all())
        await text.click({ modifiers: ['Alt'] })
      for (const key of ['2', '3']) await page.keyboard.press(key)
      await soon(() => page.locator('.panel').textContent()).not.toMatch(/[\u202e\u001b]/)
      await soon(() => page.evaluate(() => 'hit' in window)).toBe(false)
    })
  })
}
