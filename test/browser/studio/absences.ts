import { startStudio } from '../../../src/studio/index.js'
import type { MomentView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
import { forgive, get, open, openPageForEach, page, shown, stage } from './visit.js'
import { soon } from '../soon.js'

export function describeAbsences(): void {
  describe('a long session', () => {
    openPageForEach()

    it('shows its end first, and is complete in a moment', async () => {
      // A studio with an empty cache, whose full log loads slowly.
      const studio = await startStudio({ store: stage.store })
      try {
        await page.goto(studio.url)
        await page.waitForSelector('.sessions')
        let release = (): void => undefined
        const held = new Promise<void>((resolve) => {
          release = resolve
        })
        await page.route(/sessions\/long$/, async (route) => {
          await held
          await route.continue()
        })
        await page.evaluate(() => {
          location.hash = '#/session/long'
        })
        await page.waitForSelector('.panel .message')
        const count = (await stage.store.read('long')).length
        expect((await shown()).value).toMatch(new RegExp(`^Record ${count} of ${count}: `))
        expect((await shown()).active).toEqual(['COMPLETED'])
        // The end of the log does not contain the session's totals.
        await soon(() => page.locator('.chips').textContent()).toBe(
          `Reading all ${count.toLocaleString('en')} records …`,
        )
        await page.keyboard.press('Home')
        expect((await shown()).value).toMatch(/^Record 1 of \d+: …/)
        release()
        await page.waitForFunction(() =>
          document.querySelector('.slider input')?.getAttribute('aria-valuetext')?.includes(': opened'),
        )
        await soon(() => page.locator('.chips').textContent()).toMatch(/\d steps/)
        await page.keyboard.press('ArrowRight')
        expect((await shown()).active).toEqual(['RUNNING.asking.requesting'])
        await page.goto('about:blank')
        forgive('asked elsewhere')
      } finally {
        await studio.close()
      }
    })
  })

  describe('an old message', () => {
    openPageForEach()

    it('is found by its words, although the page only has the last messages', async () => {
      await open('long')
      await page.waitForSelector('text=/earlier messages/')
      await soon(() => page.locator('.message.user').count()).toBe(0)
      await page.fill('#find-messages', 'the whole book')
      await page.waitForSelector('.message.user.found')
      await soon(() => page.locator('.transcript-bar output').textContent()).toBe('1 message')
    })

    it('loads when the reader scrolls back to it', async () => {
      await open('long')
      const earlier = page.locator('text=/earlier messages/')
      const before = Number((await earlier.textContent())?.split(' ')[0])
      expect(before).toBeGreaterThan(0)
      await earlier.click()
      await page.waitForSelector('.message.user')
      const count = (await page.locator('.message:not(.instructions)').count()) + (await countEarlier())
      const { transcript } = await get<MomentView>(
        paths.moment('long', (await stage.store.read('long')).length),
      )
      expect(count).toBe(transcript.length)
    })
  })

  describe('missing data', () => {
    openPageForEach()

    it('reports an unavailable store, keeps the page, and continues when the store is back', async () => {
      stage.setAway(true)
      await page.waitForSelector('.problem')
      await soon(() => page.locator('.session').count()).toBeGreaterThan(4)
      stage.setAway(false)
      await page.waitForSelector('.problem', { state: 'detached' })
    })

    it('states that a session does not exist', async () => {
      await page.evaluate(() => (location.hash = '#/session/nowhere'))
      await soon(() => page.locator('.trouble h1').textContent()).toBe('Session not found')
      await soon(() => page.locator('.trouble p').textContent()).toMatch(/^There is no session 'nowhere'/)
      forgive('404')
    })

    it('shows a damaged session as damaged, and the others unchanged', async () => {
      const row = page.locator('.group-damaged .session')
      await soon(() => row.textContent()).toContain('damaged')
      await row.locator('a').click()
      // Records before the damage can still be viewed.
      await soon(() => page.locator('.verdict-text').textContent()).toMatch(/^Damaged: .*record/)
      await soon(() => page.locator('.verdict-text code').allTextContents()).toEqual([
        "agent.fork('damaged', 2)",
      ])
      await soon(() => page.locator('.run-title .pill').textContent()).toBe('damaged')
      expect((await shown()).value).toContain('Record 2 of 2')
    })

    it('is read-only without an agent, and explains how to enable the actions', async () => {
      const studio = await startStudio({ store: stage.store })
      try {
        await page.goto(studio.url)
        await page.waitForSelector('.sessions .read-only')
        await page.goto(`${page.url().replace(/#.*/, '')}#/session/stuck`)
        await page.waitForSelector('.panel .message')
        await soon(() => page.locator('.actions button, .edit, .run-head button').count()).toBe(0)
        // Otherwise the page would keep polling the closed studio.
        await page.goto('about:blank')
        forgive('asked elsewhere')
      } finally {
        await studio.close()
      }
    })
  })
}

/** The page's count of hidden messages. */
async function countEarlier(): Promise<number> {
  const button = page.locator('text=/earlier messages/')
  return (await button.count()) === 0 ? 0 : Number((await button.textContent())?.split(' ')[0])
}
