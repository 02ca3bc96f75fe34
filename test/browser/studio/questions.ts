import type { Locator, Page } from 'playwright-core'
import { openQuestionsStage, type QuestionsStage } from './questions-stage.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

/** The maximum number of clicks to an answer once its session is open. */
const mostClicks = 2

/**
 * Readers' most frequent questions about a session. Each answer is visible after at most two clicks, even on
 * a small screen.
 */
export function describeQuestions(): void {
  describe('a reader with a question', () => {
    let stage: QuestionsStage
    let page: Page
    let clicks: number

    beforeAll(async () => {
      stage = await openQuestionsStage()
    })

    afterAll(() => stage.close())

    const open = async (width: number, session: string): Promise<void> => {
      page = await browser.newPage({ viewport: { width, height: 800 }, reducedMotion: 'reduce' })
      await page.goto(stage.studio.url)
      await page.click(`.session a[href="#/session/${session}"]`)
      await page.waitForSelector('.panel .message')
      clicks = 0
    }

    afterEach(() => page.close())

    const click = async (one: Locator): Promise<void> => {
      clicks += 1
      await one.click()
    }

    /** Whether the element is fully in the window and uncovered. */
    const isSeen = (one: Locator): Promise<boolean> =>
      one.evaluate((element) => {
        const { left, right, top, bottom, width } = element.getBoundingClientRect()
        const isInside = width > 0 && left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight
        const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
        return isInside && found !== null && (element.contains(found) || found.contains(element))
      })

    const expectSeen = async (one: Locator, words: RegExp): Promise<void> => {
      await one.waitFor()
      await soon(() => one.innerText()).toMatch(words)
      await soon(() => isSeen(one)).toBe(true)
      expect(clicks).toBeLessThanOrEqual(mostClicks)
    }

    it('sees the result of a call or a request after a click on its bar in the timeline', async () => {
      await open(1280, 'report')
      await click(page.locator('.lane-tools .bar:has-text("query_sales")'))
      await expectSeen(page.locator('.call').last(), /^query_sales\s+ok[^]*"sum": 49180/)
      await click(page.locator('.lane-model .bar').last())
      await expectSeen(page.locator('.message.newest'), /October brought 48,210 EUR/)
    })

    it('reads the whole title of each session in a narrow list', async () => {
      page = await browser.newPage({ viewport: { width: 400, height: 800 } })
      await page.goto(stage.studio.url)
      await page.waitForSelector('.session-link')
      const listCut = (): Promise<(string | null)[]> =>
        page
          .locator('.session-link')
          .evaluateAll((all) =>
            all
              .filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight)
              .map(({ textContent }) => textContent),
          )
      await soon(listCut).toEqual([])
    })

    describe.each([1280, 400])('%i pixels wide', (width) => {
      it('sees the answer of the session', async () => {
        await open(width, 'report')
        await expectSeen(
          page.locator('.verdict-text'),
          /^The model ended its turn with an answer\.\s*.?October brought 48,210 EUR, 6% more than September\..?$/,
        )
      })

      it('sees why a session stopped, and which option allows more', async () => {
        await open(width, 'rollout')
        await expectSeen(
          page.locator('.verdict-text'),
          /^Stopped by progress\.stale\. The model has called check_health .* 5 calls to check_health ran and \d+ were refused/s,
        )
        await expectSeen(page.locator('.verdict-text code').last(), /^guardrails\.progress\.stale\.haltAt$/)
      })

      it('sees the cost and the duration of its parts', async () => {
        await open(width, 'report')
        await expectSeen(page.locator('.chip-cost'), /^\$0\.\d+ cost$/)
        await expectSeen(page.locator('.chip-time'), /^\d\d s\s*model 1\d% · tools 8\d%$/)
        await click(page.locator('.chip-time'))
        await expectSeen(page.locator('.call').last(), /^query_sales\s+ok · (38|39|4\d) s[^]*"sum": 49180/)
        await soon(() => page.locator('.step[aria-current]').innerText()).toMatch(
          /query_sales[^]*\b(39|4\d) s/,
        )
      })

      it('sees which model and which step cost most, and the request that was sent', async () => {
        await open(width, 'report')
        await click(page.locator('.chip-cost'))
        await expectSeen(
          page.locator('.spenders').first(),
          /gpt-5-mini\s+model, 5 requests\s+24,360\s+\$0\.0072/,
        )
        const costly = page.locator('.spenders').last().locator('tbody tr')
        await expectSeen(costly.nth(0), /^Step 5\s+answer\s+10,720\s+\$0\.0032$/)
        await expectSeen(costly.nth(1), /^Step 4\s+draw_chart\s+9,940\s+\$0\.0027$/)
        await click(page.locator('.spenders button', { hasText: 'Step 4' }))
        await page.locator('.run-title p:has-text("at step 4")').waitFor()
        await expectSeen(page.locator('#tab-request[aria-selected=true]'), /^Request$/)
        await page.locator('.request:has-text("9,800 in")').waitFor()
      })

      it('reads the whole dialog that lists every change', async () => {
        await open(width, 'chairs')
        await click(page.getByRole('button', { name: 'What if', exact: true }))
        const dialog = page.locator('.fork')
        await expectSeen(dialog.locator('[type=submit]'), /^Run and compare$/)
        expect(await dialog.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0)
      })

      it('sees the result of a step after a click or a key press, and of a part of the timeline', async () => {
        await open(width, 'report')
        await click(page.locator('.step:has-text("query_returns")'))
        await expectSeen(page.locator('.call').last(), /^query_returns\s+ok[^]*"sum": 970/)
        expect(
          await page.locator('.panel .edit[aria-label*="query_returns had a different result"]').count(),
        ).toBe(1)
        await page.keyboard.press('j')
        await expectSeen(page.locator('.call:has-text("query_sales")'), /^query_sales\s+ok[^]*"sum": 49180/)
        await page.keyboard.press('k')
        await page.locator('.call:has-text("query_sales")').waitFor({ state: 'detached' })
        await page.evaluate(() => scrollTo(0, 0))
        await click(page.locator('.stretch.region-WAITING_FOR_TOOL').last())
        await expectSeen(page.locator('.call').last(), /^draw_chart/)
      })

      it('reads no timeline label that is cut inside a letter or shortened to one or two letters', async () => {
        await open(width, 'report')
        const labels = await page.locator(':is(.stretch, .bar) > span').evaluateAll((all) =>
          all.map((one) => ({
            text: one.textContent,
            width: one.getBoundingClientRect().width,
            isCut: one.scrollWidth > one.clientWidth && getComputedStyle(one).textOverflow !== 'ellipsis',
          })),
        )
        const seen = labels.filter((label) => label.width > 0)
        expect(seen.length).toBeGreaterThan(0)
        expect(seen.filter((label) => label.isCut || label.width < 44)).toEqual([])
        // `WAITING_FOR_TOOL` would be cut at most widths.
        expect(seen.filter(({ text }) => text?.includes('WAITING'))).toEqual([])
      })

      it('reads the same text for a step in the header and the list, and every word of a result next to its pencil', async () => {
        await open(width, 'rollout')
        await click(page.locator('.chip-guards'))
        await page.locator('#tab-guards[aria-selected=true]').waitFor()
        await click(page.locator('#tab-transcript'))
        const number = await page.locator('.step[aria-current] .step-number').innerText()
        await soon(() => page.locator('.run-title p').innerText()).toContain(`at step ${number}`)
        const result = page.locator('.block.result:has-text("Not executed.")').last()
        const covered = await result.evaluate((block) => {
          const pencil = block.querySelector('.edit')?.getBoundingClientRect() ?? new DOMRect()
          const words = document.createRange()
          words.selectNodeContents(block.querySelector('pre') ?? block)
          return [...words.getClientRects()].filter(
            ({ right, bottom }) => right > pencil.left && bottom > pencil.top,
          ).length
        })
        expect(covered).toBe(0)
      })

      it('sees in the list that a call failed', async () => {
        page = await browser.newPage({ viewport: { width, height: 800 } })
        await page.goto(stage.studio.url)
        const row = page.locator('.session:has([href="#/session/trips"])')
        await soon(() => row.locator('.failed-calls').innerText()).toBe('1 failed call')
      })

      it('sees which tool result is an error, and its message', async () => {
        await open(width, 'trips')
        await expectSeen(page.locator('.chip-failed'), /^1 failed call: convert$/)
        await click(page.locator('#tab-cost'))
        await page.locator('#tab-cost[aria-selected=true]').waitFor()
        await click(page.locator('.chip-failed'))
        const failed = page.locator('.call.error')
        await expectSeen(failed.locator('.result pre'), /There is no rate of CHF for 2026-11-21\./)
        await expectSeen(failed.locator('.call-status'), /^error/)
        await expectSeen(failed.locator('pre').first(), /"from": "CHF"/)
      })

      it('sees the outcome of another result', async () => {
        await open(width, 'chairs')
        await click(page.locator('[aria-label="What if get_quote had a different result"]').first())
        await page.fill('.fork textarea', 'Nord asks 1999 EUR.')
        await click(page.locator('.fork [type=submit]'))
        await page.waitForSelector('.outcome[aria-busy=false]')
        await expectSeen(page.locator('.change'), /2940[^]*1999/)
        await expectSeen(page.locator('.answers'), /Take Holm: 2610[^]*Take Nord: 1999/)
        await soon(() => page.locator('.change h2').innerText()).toMatch(/^Changed result\s*get_quote$/)
        await soon(() => page.locator('.common').innerText()).toBe('6 shared records; the result changed.')
        await soon(() => page.locator('.pair .said strong').allTextContents()).toEqual(['Holm', 'Nord'])
      })
    })
  })
}
