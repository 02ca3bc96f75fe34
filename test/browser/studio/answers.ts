import { memoryStore } from '../../../src/index.js'
import { startStudio } from '../../../src/studio/index.js'
import { book } from '../../support/asking.js'
import { stage as play } from '../../support/play.js'
import { call, text } from '../../support/tools.js'
import { forgive, open, openPageForEach, page, shown, stage } from './visit.js'
import { soon } from '../soon.js'

export function describeAnswers(): void {
  describe('a person', () => {
    openPageForEach()

    it('edits and approves a call in the page, and the run executes it once', async () => {
      const before = stage.paid().length
      await open('expenses')
      await page.fill('.pending textarea', '{ "to": "Casa Lisboa", "amount": "much" }')
      await page.click('text=Approve as edited')
      await page.waitForSelector('.actions .refusal')
      // Visible, and not below the question.
      const isSeen = page.locator('.actions .refusal').evaluate((line) => {
        const { top, bottom } = line.getBoundingClientRect()
        const around = line.closest('.actions')?.getBoundingClientRect()
        return around !== undefined && top >= around.top && bottom <= Math.min(around.bottom, innerHeight)
      })
      await soon(() => isSeen).toBe(true)
      forgive('400')
      await page.fill('.pending textarea', '{ "to": "Casa Lisboa", "amount": 3800 }')
      await page.click('text=Approve as edited')
      await page.waitForSelector('.run-title .pill.tone-good')
      expect(stage.paid().slice(before)).toEqual([3800])
      expect((await shown()).active).toEqual(['COMPLETED'])
    })

    it('answers a server’s question in the page', async () => {
      const store = memoryStore()
      const tools = [book()]
      const theatre = await play([call('book', { flight: 'X1' }), text('Done.')], { tools, store })
      await theatre.run('Book it.', { session: 's' }).rest()
      const studio = await startStudio({ store, agent: theatre.agent })
      try {
        await page.goto(studio.url)
        await page.waitForSelector('.sessions')
        await page.goto(`${page.url().replace(/#.*/, '')}#/session/s`)
        await page.getByLabel('Seat').fill('12A')
        await page.locator('.pending .primary').click()
        await page.waitForSelector('.run-title .pill.tone-good')
        expect(tools[0]?.does).toHaveLength(1)
        await page.goto('about:blank')
        forgive('asked elsewhere')
      } finally {
        await studio.close()
      }
    })

    it('forks with other words, and leaves the original session unchanged', async () => {
      const log = await stage.store.read('html')
      await open('html', 3)
      await page.locator('.message.user').hover()
      await page.click('.message.user .edit')
      await page.fill('.fork textarea', 'Look up nothing.')
      await page.uncheck('.fork [type=checkbox]')
      await page.click('.fork [type=submit]')
      await page.waitForSelector('.run-title h1:has-text("Look up nothing.")')
      expect(await stage.store.read('html')).toEqual(log)
      await page.click('text=compare')
      await page.waitForSelector('.compare-chart .both')
    })
  })
}
