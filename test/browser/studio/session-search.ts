import { openPageForEach, page } from './visit.js'
import { soon } from '../soon.js'

// A row outside the viewport has no layout and no inner text.
const titles = () => page.locator('.session-title').allTextContents()
const waitForTitles = (count: number) =>
  page.waitForFunction((count) => document.querySelectorAll('.session-title').length === count, count)

export function describeSessionSearch(): void {
  describe('a search of the list', () => {
    openPageForEach()

    it('finds sessions by the words of their messages, and leads back to the match', async () => {
      await page.keyboard.press('/')
      await page.keyboard.type('mostly')
      await waitForTitles(1)
      await soon(() => titles()).toEqual(['Which colour is the sky?'])
      await page.waitForFunction(() => location.hash === '#/find/mostly')
      await page.locator('.session-link').click()
      await page.waitForSelector('.run')
      await page.goBack()
      await waitForTitles(1)
      await soon(() => page.locator('.search input').inputValue()).toBe('mostly')
      await soon(() => page.locator('.lead').innerText()).toMatch(/^1 of \d+ sessions/)
    })

    it('filters by menus and sorts, with the keyboard alone', async () => {
      await page.waitForFunction(
        () => document.querySelectorAll('.filter-fields option[value="pay"]').length === 1,
      )
      await page.locator('.filters summary').focus()
      await page.keyboard.press('Enter')
      await page.locator('.filter-fields').getByLabel('Tool').focus()
      await page.keyboard.type('pay')
      await waitForTitles(2)
      await soon(() => page.locator('.search input').inputValue()).toBe('tool:pay')
      await page.getByLabel('Sort by').selectOption('created')
      // The other one waits, so it came first.
      await page.waitForFunction(
        () =>
          document.querySelectorAll('.group').length === 1 &&
          document.querySelector('.session-title')?.textContent?.includes('last year') === true,
      )
      await page.locator('.search input').fill('nothing has these words')
      await page.waitForSelector('.empty')
    })

    it('lists the sub-agents of a session below it, folded', async () => {
      const before = (await titles()).length
      await page.locator('.sub-agents').first().click()
      await waitForTitles(before + 1)
      await soon(() => page.locator('.session.inner .session-sub').textContent()).toContain('sub-agent of')
    })

    it('shows the cost of sessions per day and the reasons of failures, each of which is a filter', async () => {
      await page.waitForSelector('.days svg')
      await soon(() => page.locator('.days svg').first().getAttribute('aria-label')).toMatch(
        /^Cost by day, from \d/,
      )
      await page.locator('.reason').first().click()
      await page.waitForFunction(() =>
        document.querySelector<HTMLInputElement>('.search input')?.value.startsWith('reason:'),
      )
    })
  })
}
