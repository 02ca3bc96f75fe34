import type { Page } from 'playwright-core'
import { createAgent, memoryStore, type Run, type SyncSessionStore } from '../../../src/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { obedient } from '../../support/granting.js'
import { tool } from '../../support/tools.js'
import { soon } from '../soon.js'
import { findFaults } from './find-faults.js'
import { browser } from './visit.js'

export function describeGrants(): void {
  describe('a grant', () => {
    let store: SyncSessionStore
    let studio: Studio
    let page: Page
    let paid: unknown[]

    beforeEach(async () => {
      store = memoryStore()
      paid = []
      const tools = [tool('pay', (input) => void paid.push(input), { needsApproval: true })]
      const agent = createAgent({ model: obedient, store, tools })
      await (agent.run('[["pay",{"n":1}]]', { session: 's' }) as Run).result
      studio = await startStudio({ store, agent, by: 'ann' })
      page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
      await page.goto(studio.url)
      await page.waitForSelector('.sessions')
      await page.goto(`${page.url().replace(/#.*/, '')}#/session/s`)
      await page.waitForSelector('.pending')
    })

    afterEach(async () => {
      await page.close()
      await studio.close()
    })

    it('comes with an approval, is listed with its giver, and is revoked', async () => {
      await page.getByLabel('Also approve later calls with these arguments').check()
      await page.locator('.pending .primary').click()
      await page.waitForSelector('.run-title .pill.tone-good')
      expect(paid).toEqual([{ n: 1 }])
      const grant = page.locator('.grants li')
      await soon(() => grant.innerText()).toMatch(/pay\s+\{"n":1\}\s+given by ann\s+Revoke/)
      expect(await findFaults(page, { coloursAlone: false })).toEqual([])
      await grant.getByRole('button').click()
      await soon(() => grant.innerText()).toMatch(/pay\s+\{"n":1\}\s+revoked · given by ann$/)
      await soon(() => page.locator('.grants summary').innerText()).toBe('No active grants')
      await soon(async () => store.inbox?.read('s').length).toBe(1)
      expect(await findFaults(page, { coloursAlone: false })).toEqual([])
    })

    it('does not come with an approval alone', async () => {
      await page.locator('.pending .primary').click()
      await page.waitForSelector('.run-title .pill.tone-good')
      expect(await page.locator('.grants').count()).toBe(0)
    })
  })
}
