import type { Page } from 'playwright-core'
import { z } from 'zod'
import { defineTool, memoryStore, sleepUntil } from '../../../src/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { rehearsedAgent } from '../../studio/rehearsed.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

const shown = '2100-05-01 12:00:00 UTC'

export function describeSleep(): void {
  describe('a run that sleeps', () => {
    let studio: Studio
    let close: () => Promise<void>
    let page: Page

    beforeAll(async () => {
      const store = memoryStore()
      const nap = defineTool({
        name: 'wait_for_payment',
        description: 'Waits.',
        input: z.object({}),
        execute: () => sleepUntil(Date.UTC(2100, 4, 1, 12)),
      })
      const turns = [{ toolCalls: [{ name: 'wait_for_payment', arguments: {} }] }, { text: 'It is paid.' }]
      const rehearsed = await rehearsedAgent(store, turns, { tools: [nap] })
      await rehearsed.agent.run('Send the goods.', { session: 's' }).result
      studio = await startStudio({ store, agent: rehearsed.agent })
      close = rehearsed.close
    })

    afterAll(async () => {
      await studio.close()
      await close()
    })

    it('shows its wake time in the list and on its page, and is woken by a button', async () => {
      page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
      await page.goto(studio.url)
      await page.waitForSelector('.group-sleeping')
      await soon(() => page.locator('.group-sleeping').textContent()).toContain(`until ${shown}`)
      await soon(() => page.locator('.group-sleeping .pill').textContent()).toBe('sleeping')
      await soon(() => page.locator('.group-waiting').count()).toBe(0)
      await page.locator('.session-link').click()
      await page.waitForSelector('.verdict-text')
      await soon(() => page.locator('.verdict-text').innerText()).toContain(`It sleeps until ${shown}.`)
      await soon(() => page.locator('.run-title .pill').innerText()).toBe('sleeping')
      await soon(() => page.locator('.stretch').last().getAttribute('title')).toBe('SLEEPING')
      await soon(() => page.locator('main').innerText()).not.toContain('asked to pause')
      await page.locator('.verdict-buttons').getByText('Wake it now').click()
      await page.waitForFunction(
        () => document.querySelector('.verdict-text')?.textContent?.includes('ended its turn') === true,
      )
      await page.close()
    })
  })
}
