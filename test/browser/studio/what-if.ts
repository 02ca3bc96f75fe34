import type { Page } from 'playwright-core'
import { memoryStore, type SessionStore } from '../../../src/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { rehearsedAgent } from '../../studio/rehearsed.js'
import { browser } from './visit.js'

const look = (id: string, what: string) => ({ id, name: 'look_up', arguments: { what } })
const turns = [
  { text: 'Both at once.', toolCalls: [look('a', 'tea'), look('b', 'coffee')] },
  { text: 'Now water.', toolCalls: [look('c', 'water')] },
  { text: 'All drinks are known.' },
]

export function describeWhatIf(): void {
  describe('what if', () => {
    let store: SessionStore
    let studio: Studio
    let close: () => Promise<void>
    let page: Page
    let faults: string[] = []

    beforeAll(async () => {
      store = memoryStore()
      const rehearsed = await rehearsedAgent(store, turns)
      await rehearsed.agent.run('What is there to drink?', { session: 's' }).result
      studio = await startStudio({ store, agent: rehearsed.agent })
      close = rehearsed.close
    })

    afterAll(async () => {
      await studio.close()
      await close()
    })

    beforeEach(async () => {
      page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
      faults = []
      page.on('pageerror', ({ message }) => faults.push(message))
      await page.goto(studio.url)
      await page.waitForSelector('.sessions')
      await page.goto(`${page.url().replace(/#.*/, '')}#/session/s`)
      await page.waitForSelector('.panel .message')
    })

    afterEach(async () => {
      await page.close()
      expect(faults).toEqual([])
    })

    it('gives a call another result from the end of the session, runs it, and shows what that changed', async () => {
      const log = await store.read('s')
      // Seen without a mouse over it.
      const pencil = page.locator('[aria-label="What if look_up had another result"]').first()
      expect(await pencil.evaluate((button) => getComputedStyle(button).opacity)).toBe('1')
      await pencil.press('Enter')
      await page.waitForSelector('.fork')
      // The slider is at the end, and the fork is made where the batch has its results.
      expect(await page.locator('.fork p').first().textContent()).toContain('at record 5.')
      expect(await page.locator('.fork .effect').textContent()).toMatch(
        /^The 2 steps after this are dropped and asked again, about \$[\d.]+\. 1 call of them ran \(look_up\)/,
      )
      await page.fill('.fork textarea', 'About tea: 4 letters.')
      await page.click('.fork [type=submit]')
      await page.waitForSelector('.change')
      expect(await page.locator('main > *').nth(2).getAttribute('class')).toBe('change')
      expect(await page.locator('.change del').allTextContents()).toEqual(['3'])
      expect(await page.locator('.change ins').allTextContents()).toEqual(['4'])
      // It works on, and the page follows it to its end.
      await page.waitForSelector('.outcome .pill.tone-good >> nth=1')
      await page.waitForSelector('.outcome[aria-busy=false]')
      expect(await page.locator('.outcome tbody tr').first().textContent()).toMatch(/^State.*same$/)
      // What differs is marked, also where it is a result.
      const colours = await page.evaluate(() =>
        ['.call pre.result.differs', '.differs'].map((one) => {
          const element = document.querySelector(one)
          return element ? getComputedStyle(element).backgroundColor : ''
        }),
      )
      expect(colours[0]).toBe(colours[1])
      expect(colours[0]).not.toBe('')
      // What lies before the fork was taken by both.
      expect(await page.locator('.compare-chart .picture .only-a').count()).toBe(0)
      expect(await page.locator('.compare-chart .picture .both').count()).toBeGreaterThan(3)
      expect(await store.read('s')).toEqual(log)
    })

    it('has a pencil at every result, its arguments and every message of the user, and none without an agent', async () => {
      expect(await page.locator('.edit').count()).toBe(1 + 2 * 3)
      const readOnly = await startStudio({ store })
      try {
        await page.goto(readOnly.url)
        await page.waitForSelector('.sessions')
        await page.goto(`${page.url().replace(/#.*/, '')}#/session/s`)
        await page.waitForSelector('.panel .message')
        expect(await page.locator('.edit').count()).toBe(0)
        await page.goto('about:blank')
      } finally {
        await readOnly.close()
      }
    })
  })
}
