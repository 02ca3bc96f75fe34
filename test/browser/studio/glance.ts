import type { SessionView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
import { get, open, openPageForEach, page, shown } from './visit.js'
import { soon } from '../soon.js'

export function describeGlance(): void {
  describe('a session at a glance', () => {
    openPageForEach()

    const at = async (): Promise<number> => Number((await shown()).value.match(/Record (\d+)/)?.[1])

    it('states what stopped it and the option that raises the limit, and links to the record', async () => {
      await open('stuck')
      const text = (await page.locator('.verdict-text').textContent()) ?? ''
      expect(text).toMatch(/^Stopped by progress\.stale\. The model has called ping .* 21 times/)
      expect(text).toContain('5 calls to ping ran and 16 were refused.')
      await soon(() => page.locator('.verdict-text code').allTextContents()).toContain(
        'guardrails.progress.stale.haltAt',
      )
      const { rows, verdict } = await get<SessionView>(paths.session('stuck'))
      await page.click('.verdict-buttons >> text=Record')
      await soon(() => at()).toBe(verdict.seq)
      expect(rows[verdict.seq - 1]?.flags).toContain('halt')
      // The mark shows the halt, although there are also a nudge and a refusal.
      await soon(() => page.locator('.marks .flag-halt svg').count()).toBe(1)
    })

    it('states its duration and cost, and each part leads to its records in turn', async () => {
      await open('paid')
      const chips = await page.locator('.chip-button').allTextContents()
      expect(chips.join(' | ')).toMatch(
        /model \d+%(?: · (?:tools|sub-agents|waits|other) \d+%)* \| 5 steps \| [\d,]+ tokens, 0% cached \| \$0\.\d+ cost \| 1 retry/,
      )
      const { rows } = await get<SessionView>(paths.session('paid'))
      await page.click('.chip-retries')
      expect(rows[(await at()) - 1]?.flags).toContain('retry')
      await page.click('.chip-steps')
      const first = await at()
      await page.click('.chip-steps')
      await soon(() => at()).toBeGreaterThan(first)
    })

    it('lists its steps with their calls, filters them, and moves through them with j and k', async () => {
      await open('stuck')
      await soon(() => page.locator('.step.merged').textContent()).toContain('15 ×')
      await page.fill('#find-steps', 'tool:ping halt')
      await page.waitForFunction(() => document.querySelectorAll('.step').length === 1)
      await page.fill('#find-steps', 'nudge')
      await page.locator('.steps-box').focus()
      await page.keyboard.press('Home')
      const found: number[] = []
      for (let last = await at(); ; last = found.at(-1) ?? 0) {
        await page.keyboard.press('j')
        if ((await at()) === last) break
        found.push(await at())
      }
      expect(found).toHaveLength(2)
      await page.keyboard.press('k')
      await soon(() => at()).toBe(found[0])
      await page.fill('#find-steps', 'nothing')
      await page.waitForSelector('.steps-box .empty')
    })

    it('shows the steps of a sub-agent below its call, with links in both directions', async () => {
      await open('paid')
      await page.click('.step.child .folds')
      await page.click('.step.inner')
      await page.waitForSelector('.run-title h1:has-text("check_price")')
      await page.click('.steps-head a')
      await page.waitForSelector('.run-title h1:has-text("last year")')
    })

    it('draws the visited states in readable letters, and the whole chart on a key press', async () => {
      await open('paid')
      const smallest = () =>
        page.evaluate(() => {
          const svg = document.querySelector<SVGSVGElement>('.picture svg')
          const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 0
          const sizes = [...document.querySelectorAll('.picture text')].map((text) =>
            Number(text.getAttribute('font-size')),
          )
          return Math.min(...sizes) * scale
        })
      await soon(() => smallest()).toBeGreaterThanOrEqual(11.9)
      await soon(() => page.locator('.picture [data-state=CANCELLED]').count()).toBe(0)
      await page.keyboard.press('c')
      await soon(() => page.locator('.picture [data-state=CANCELLED]').count()).toBe(1)
    })
  })
}
