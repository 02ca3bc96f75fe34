import type { Page } from 'playwright-core'
import { memoryStore } from '../../../src/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { askExpiring } from '../../studio/rehearsed.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

const expiresMs = 3_600_000

export function describeExpiry(): void {
  describe('an approval request that expires', () => {
    let studio: Studio
    let paid: readonly number[]
    const close: (() => Promise<void>)[] = []
    let page: Page

    beforeAll(async () => {
      const store = memoryStore()
      const askedAt = Date.UTC(2100, 4, 1, 11)
      const open = await askExpiring(store, 'open', { askedAt, expiresMs, onExpiry: 'cancel' })
      const late = await askExpiring(store, 'late', { askedAt: Date.UTC(2026, 0, 1), expiresMs })
      ;({ paid } = late)
      close.push(open.close, late.close)
      studio = await startStudio({ store, agent: late.agent })
    })

    afterAll(async () => {
      await studio.close()
      await Promise.all(close.map((end) => end()))
    })

    beforeEach(async () => {
      page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
      await page.goto(studio.url)
      await page.waitForSelector('.group-waiting .session')
    })

    afterEach(() => page.close())

    const row = (id: string) =>
      page.locator('.session').filter({ has: page.locator(`[href="#/session/${id}"]`) })

    it('shows its deadline and what happens after it', async () => {
      await soon(() => row('open').locator('.session-state').innerText()).toContain(
        'until 2100-05-01 12:00:00 UTC',
      )
      await soon(() => row('open').locator('.pill').innerText()).toBe('waiting for input')
      await page.setViewportSize({ width: 400, height: 800 })
      await soon(() => row('open').locator('.until').innerText()).toBe('until 2100-05-01 12:00:00 UTC')
      expect(await row('open').evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true)
      await page.setViewportSize({ width: 1280, height: 800 })
      await row('open').locator('.session-link').click()
      await page.waitForSelector('.pending')
      await soon(() => page.locator('.pending').innerText()).toContain(
        'Expires at 2100-05-01 12:00:00 UTC. Then the run is cancelled.',
      )
      await soon(() => page.locator('.verdict-text').innerText()).toContain('until 2100-05-01 12:00:00 UTC')
      await soon(() => page.locator('.pending .buttons').innerText()).toMatch(/Approve\s+Reject/)
    })

    it('reports that it has expired, and the resumed run continues without the call', async () => {
      await soon(() => row('late').locator('.session-state').innerText()).toMatch(/approval\s*expired$/)
      await row('late').locator('.session-link').click()
      await page.waitForSelector('.pending')
      await soon(() => page.locator('.pending').innerText()).toContain(
        'Expired at 2026-01-01 01:00:00 UTC. When the session is resumed, the call is not executed.',
      )
      await soon(() => page.locator('.pending .buttons').innerText()).toBe('Resume')
      await page.locator('.pending .buttons button').click()
      await page.waitForSelector('.run-title .pill.tone-good')
      await page.locator('.panel .call-status', { hasText: 'expired' }).waitFor()
      expect(paid).toEqual([])
    })
  })
}
