import type { Page } from 'playwright-core'
import { memoryStore } from '../../../src/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'
import { rehearsedAgent } from '../../studio/rehearsed.js'
import { browser } from './visit.js'
import { soon } from '../soon.js'

const pay = (id: string, to: string) => ({ id, name: 'pay', arguments: { amount: 3, to } })

export function describeKeyboard(): void {
  describe('a person without a mouse', () => {
    let studio: Studio
    let paid: readonly number[]
    let close: () => Promise<void>
    let page: Page

    beforeAll(async () => {
      const store = memoryStore()
      const rehearsed = await rehearsedAgent(store, [
        { text: 'I look it up.', toolCalls: [{ name: 'look_up', arguments: { what: 'the two bills' } }] },
        { text: 'I pay both.', toolCalls: [pay('a', 'Ada'), pay('b', 'Ben')] },
        { text: 'Both are paid.' },
      ])
      await rehearsed.agent.run('Pay both bills.', { session: 's' }).result
      ;({ paid, close } = rehearsed)
      studio = await startStudio({ store, agent: rehearsed.agent })
    })

    afterAll(async () => {
      await studio.close()
      await close()
    })

    afterEach(() => page.close())

    const settle = (): Promise<void> =>
      page.evaluate(
        () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
      )

    const press = async (...keys: string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key)
      await settle()
    }

    /** Presses Tab until this has the focus. */
    const tabTo = async (selector: string): Promise<void> => {
      for (let stop = 0; stop < 80; stop++) {
        await press('Tab')
        if (await page.evaluate((one) => document.activeElement?.matches(one), selector)) return
      }
      throw new Error(`Tab does not reach ${selector}.`)
    }

    const openRun = async (width = 1280): Promise<void> => {
      page = await browser.newPage({ viewport: { width, height: 800 }, reducedMotion: 'reduce' })
      await page.goto(studio.url)
      await page.waitForSelector('.session')
      await tabTo('.session-link')
      await press('Enter')
      await page.waitForSelector('.panel .message')
      await settle()
    }

    const focused = () =>
      page.evaluate(() => {
        const { tagName, className, textContent } = document.activeElement ?? document.body
        return { tagName, className, text: (textContent ?? '').trim() }
      })

    it('moves through a wide chart with the arrow keys, and through the records elsewhere', async () => {
      await openRun()
      await tabTo('.picture')
      await tabTo('[aria-label="Larger"]')
      await press('Enter', 'Enter', 'Enter', 'Enter', 'Enter', 'Shift+Tab', 'Shift+Tab')
      const place = () => page.locator('.slider output').innerText()
      const before = await place()
      await press('ArrowRight')
      await page.waitForFunction(() => (document.querySelector('.picture')?.scrollLeft ?? 0) > 0)
      await soon(() => place()).toBe(before)
      await press('3')
      await soon(() => focused()).toMatchObject({ className: 'side' })
      await press('ArrowLeft')
      await soon(() => place()).not.toBe(before)
    })

    it('keeps the focus on a button that has no further effect', async () => {
      await openRun()
      await tabTo('[aria-label="First record"]')
      await press('Enter', 'Enter')
      await soon(() => page.locator('.slider output').innerText()).toMatch(/^1 \//)
      await press('Tab', 'Tab', 'Tab', 'Enter')
      await soon(() => page.locator('.slider output').innerText()).toMatch(/^2 \//)
    })

    it('keeps the focus while a note is written, and after it is saved', async () => {
      await openRun()
      await tabTo('.mark-note')
      await press('Enter')
      await page.keyboard.type('Too early.')
      await press('Tab')
      await soon(() => focused()).toMatchObject({ text: 'Save' })
      // Draws the run again, as live runs do every second.
      await page.locator('.lanes-button').evaluate((button: HTMLElement) => button.click())
      await settle()
      await soon(() => focused()).toMatchObject({ text: 'Save' })
      await press('Enter')
      await page.waitForSelector('.mark-buttons form', { state: 'detached' })
      await soon(() => focused()).toMatchObject({ className: 'mark-buttons' })
    })

    it('returns from What if to its button, also after another choice', async () => {
      await openRun()
      await tabTo('.run-head > button')
      await press('Enter')
      await page.waitForSelector('dialog.fork[open]')
      await soon(() => page.evaluate(() => document.activeElement?.tagName)).toBe('TEXTAREA')
      await press('Shift+Tab')
      const choice = page.getByLabel('What to change')
      const first = Number(await choice.inputValue())
      await press('ArrowDown')
      await soon(() => choice.inputValue()).toBe(`${first + 1}`)
      await soon(() => choice.evaluate((one) => one === document.activeElement)).toBe(true)
      await page.waitForSelector('dialog.fork[open]')
      await press('Escape')
      await page.waitForSelector('dialog.fork', { state: 'detached' })
      await soon(() => focused()).toMatchObject({ text: 'What if' })
    })

    it('sees the focused element above the timeline of a small window', async () => {
      await openRun(1000)
      const covered: string[] = []
      for (let stop = 0; stop < 40; stop++) {
        await press('Tab')
        covered.push(
          ...(await page.evaluate(() => {
            const { activeElement } = document
            const [own, dock] = [activeElement, document.querySelector('.dock')].map((one) =>
              one?.getBoundingClientRect(),
            )
            const isLower = own && dock && own.top >= dock.top
            return activeElement && isLower && !activeElement.closest('.dock')
              ? [activeElement.outerHTML]
              : []
          })),
        )
      }
      expect(covered).toEqual([])
    })

    it('answers one question after another, and never loses the focus', async () => {
      await openRun()
      await soon(() => focused()).toMatchObject({ tagName: 'MAIN' })
      await press('a')
      await soon(() => focused()).toMatchObject({ className: 'pending' })
      await press('Tab', 'Tab', 'Tab')
      await soon(() => focused()).toMatchObject({ text: 'Approve' })
      await press('Enter')
      await page.waitForFunction(() => document.querySelectorAll('.pending').length === 1)
      await soon(() => focused()).toMatchObject({ tagName: 'SECTION' })
      await press('a', 'Tab', 'Tab', 'Tab')
      await soon(() => focused()).toMatchObject({ text: 'Approve' })
      await press('Enter')
      await page.waitForSelector('.run-title .pill.tone-good')
      await settle()
      await soon(() => focused()).toMatchObject({ tagName: 'SECTION', className: 'side' })
      expect(paid).toEqual([3, 3])
    })
  })
}
