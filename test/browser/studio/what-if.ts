import type { Page } from 'playwright-core'
import { memoryStore, type SessionStore } from '../../../src/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { rehearsedAgent } from '../../studio/rehearsed.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

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
    const close: (() => Promise<void>)[] = []
    let page: Page
    let faults: string[] = []

    beforeAll(async () => {
      store = memoryStore()
      const limited = await rehearsedAgent(store, turns, { limits: { maxSteps: 2 } })
      await limited.agent.run('What is there to drink?', { session: 'limited' }).result
      const rehearsed = await rehearsedAgent(store, turns, { instructions: 'You know drinks.' })
      await rehearsed.agent.run('What is there to drink?', { session: 's' }).result
      studio = await startStudio({ store, agent: rehearsed.agent })
      const paying = await rehearsedAgent(store, [
        { text: 'I pay.', toolCalls: [{ id: 'p', name: 'pay', arguments: { amount: 3, to: 'Ada' } }] },
        { text: 'It is paid.' },
      ])
      const { pending = [] } = await paying.agent.run('Pay Ada.', { session: 'paid' }).result
      const run = await paying.agent.resume('paid')
      for (const call of pending) run.approve(call)
      await run.result
      close.push(limited.close, rehearsed.close, paying.close)
    })

    afterAll(async () => {
      await studio.close()
      await Promise.all(close.map((end) => end()))
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

    it('replaces the result of a call from the end of the session, runs it, and shows the difference', async () => {
      const log = await store.read('s')
      // Visible without hover.
      const pencil = page.locator('[aria-label="What if look_up had a different result"]').first()
      await soon(() => pencil.evaluate((button) => getComputedStyle(button).opacity)).toBe('1')
      await pencil.press('Enter')
      await page.waitForSelector('.fork')
      // The slider is at the end, and the fork starts at the batch results.
      await soon(() => page.locator('.fork p').first().textContent()).toContain('at record 5.')
      await soon(() => page.locator('.fork .effect').textContent()).toMatch(
        /^The 2 steps after this are discarded and run again, about \$[\d.]+\. 1 read-only call may run again\. Earlier calls keep their results\.$/,
      )
      await page.fill('.fork textarea', 'About tea: 4 letters.')
      await page.click('.fork [type=submit]')
      await page.waitForSelector('.change')
      await soon(() => page.locator('main > *').nth(2).getAttribute('class')).toBe('change')
      await soon(() => page.locator('.change del').allTextContents()).toEqual(['3'])
      await soon(() => page.locator('.change ins').allTextContents()).toEqual(['4'])
      // It continues, and the page follows it to its end.
      await page.waitForSelector('.outcome .pill.tone-good >> nth=1')
      await page.waitForSelector('.outcome[aria-busy=false]')
      await soon(() => page.locator('.outcome tbody tr').first().textContent()).toMatch(/^State.*same$/)
      await soon(() => page.locator('.outcome tbody tr').nth(1).textContent()).toMatch(/^Model\S.*same$/)
      // Differences are marked, including results.
      const colours = await page.evaluate(() =>
        ['.call pre.result.differs', '.differs'].map((one) => {
          const element = document.querySelector(one)
          return element ? getComputedStyle(element).backgroundColor : ''
        }),
      )
      expect(colours[0]).toBe(colours[1])
      expect(colours[0]).not.toBe('')
      // Both took the steps before the fork.
      await soon(() => page.locator('.compare-chart .picture .only-a').count()).toBe(0)
      await soon(() => page.locator('.compare-chart .picture .both').count()).toBeGreaterThan(3)
      expect(await store.read('s')).toEqual(log)
    })

    it('offers every change of the session at the button, the latest first', async () => {
      await page.getByRole('button', { name: 'What if', exact: true }).click()
      await page.waitForSelector('.fork')
      const choice = page.getByLabel('What to change')
      await soon(() => choice.locator('option:checked').textContent()).toMatch(
        /^Step 2: result of look_up\(\{"what":"water"\}\), ok$/,
      )
      await page.waitForSelector('.fork textarea')
      await choice.selectOption({ label: 'Nothing, just rerun it' })
      await page.waitForSelector('.fork textarea', { state: 'detached' })
      const message = choice.locator('option', { hasText: 'Message:' }).first()
      await choice.selectOption((await message.getAttribute('value')) ?? '')
      await soon(() => page.locator('.fork h2').textContent()).toBe(
        'What if the user message were different?',
      )
    })

    it('offers the last replaceable result of a run that stopped at its limit, requires a change, and compares', async () => {
      await page.goto(`${page.url().replace(/#.*/, '')}#/session/limited`)
      await page.waitForSelector('.verdict:has-text("maxSteps")')
      await page.getByRole('button', { name: 'What if', exact: true }).click()
      const dialog = page.locator('.fork')
      // The result of water ended the run, so that no model would read another one.
      await soon(() => page.getByLabel('What to change').locator('option:checked').textContent()).toMatch(
        /^Step 1: result of look_up\(\{"what":"coffee"\}\), ok$/,
      )
      expect(await dialog.locator('option', { hasText: 'result of look_up({"what":"water"})' }).count()).toBe(
        0,
      )
      await soon(() => dialog.locator('textarea').evaluate((one) => one === document.activeElement)).toBe(
        true,
      )
      const submit = dialog.locator('[type=submit]')
      await soon(() => submit.isDisabled()).toBe(true)
      await dialog.getByText('To run it, edit the text.').waitFor()
      await dialog.locator('textarea').fill('About coffee: nothing.')
      await soon(() => submit.textContent()).toBe('Run and compare')
      await submit.click()
      await page.waitForSelector('.change ins')
      await page.waitForSelector('.outcome[aria-busy=false]')
    })

    it('runs an ended session again from its last request without a change', async () => {
      await page.getByRole('button', { name: 'What if', exact: true }).click()
      await page.getByLabel('What to change').selectOption({ label: 'Nothing, just rerun it' })
      const submit = page.locator('.fork [type=submit]')
      await soon(() => submit.textContent()).toBe('Run and compare')
      await submit.click()
      await page.waitForSelector('.outcome[aria-busy=false]')
    })

    it('offers another decision and other instructions in separate forks, and asks before it executes', async () => {
      await page.goto(`${page.url().replace(/#.*/, '')}#/session/paid`)
      const decided = page.locator('.decision')
      await decided.waitFor()
      await soon(() => decided.textContent()).toBe('Approved by a person')
      await decided.locator('.edit').press('Enter')
      await page.waitForSelector('.fork')
      await soon(() => page.locator('.fork h2').textContent()).toBe('What if pay were decided differently?')
      await soon(() => page.locator('.fork .effect').textContent()).toMatch(
        /1 call with possible side effects \(pay\) will need approval\./,
      )
      await page.fill('.fork input[type=text]', 'Too dear.')
      await page.click('text=Reject and compare')
      await page.waitForSelector('.change')
      await soon(() => page.locator('.change h2').textContent()).toBe('Changed decisionpay')
      await soon(() => page.locator('.change ins').last().textContent()).toContain('dear')
      await page.waitForSelector('.outcome[aria-busy=false]')
      // From the start, where the executed call waits for a person.
      await page.goto(`${page.url().replace(/#.*/, '')}#/session/paid`)
      await page.waitForSelector('.message.instructions .edit')
      await page.locator('.message.instructions .edit').press('Enter')
      await page.fill('.fork textarea', 'You pay nobody.')
      await page.click('.fork [type=submit]')
      await page.waitForSelector('.change h2:has-text("Changed instructions")')
      await soon(() => page.locator('.change ins').count()).toBeGreaterThan(0)
      await page.click('.compare-heads .letter-b a')
      await page.waitForSelector('.message.instructions:has-text("You pay nobody.")')
      await soon(() => page.locator('.message.instructions .why').textContent()).toBe('for this fork only')
    })

    it('has a pencil at the instructions, every call, every result and every user message, and none without an agent', async () => {
      await soon(() => page.locator('.edit').count()).toBe(1 + 1 + 2 * 3)
      const readOnly = await startStudio({ store })
      try {
        await page.goto(readOnly.url)
        await page.waitForSelector('.sessions')
        await page.goto(`${page.url().replace(/#.*/, '')}#/session/s`)
        await page.waitForSelector('.panel .message')
        await soon(() => page.locator('.edit').count()).toBe(0)
        await page.goto('about:blank')
      } finally {
        await readOnly.close()
      }
    })
  })
}
