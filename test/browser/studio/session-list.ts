import { forgive, openPageForEach, page, stage } from './visit.js'
import { soon } from '../soon.js'

export function describeSessionList(): void {
  describe('the list of sessions', () => {
    openPageForEach()

    it('lists waiting sessions first, and finds a session by its words', async () => {
      const heads = await page.locator('.group h2').allTextContents()
      expect(heads[0]).toMatch(/^Waiting for you/)
      await page.keyboard.press('/')
      await page.keyboard.type('last year')
      await page.waitForFunction(() => document.querySelectorAll('.session').length === 1)
      await soon(() => page.locator('.session-title').first().textContent()).toContain('last year')
    })

    it('is a table that its headers sort in both directions, and back', async () => {
      const numbers = async (column: number) =>
        (await page.locator(`.session td:nth-child(${column})`).allTextContents()).map(
          (text) => Number.parseFloat(text.replaceAll(',', '')) * (/\dk/.test(text) ? 1_000 : 1),
        )
      const waitForFirst = (title: string) => page.waitForSelector(`.session >> nth=0 >> text=${title}`)
      await soon(() => page.locator('.session-list thead th').allTextContents()).toEqual([
        'Compare',
        'Session',
        'State',
        'Agent',
        'Model',
        'Steps',
        'Duration',
        'Tokens',
        'Cost',
        'Age',
      ])
      const header = page.locator('thead th:has-text("Tokens")')
      const sortOf = () => header.getAttribute('aria-sort')
      await soon(() => sortOf()).toBeNull()
      await header.locator('button').click()
      await waitForFirst('Read the whole book')
      await soon(() => sortOf()).toBe('descending')
      const down = await numbers(8)
      expect(down).toEqual(down.toSorted((a, b) => b - a))
      await header.locator('button').click()
      await page.waitForSelector('.session:last-child >> text=Read the whole book')
      await soon(() => sortOf()).toBe('ascending')
      await soon(() => numbers(8)).toEqual(down.toReversed())
      await header.locator('button').click()
      await page.waitForSelector('.group-waiting')
      await soon(() => page.locator('.session td:nth-child(5)').first().textContent()).toBe('gpt-5-mini')
    })

    it('shows each title and its facts below it on a phone, with the state and the facts in the same columns', async () => {
      await page.setViewportSize({ width: 400, height: 800 })
      const rows = await page.locator('.session').evaluateAll((all) =>
        all.map((row) => {
          const boxes = [...row.children].map((cell) => cell.getBoundingClientRect())
          const [, name, state, , model, steps] = boxes
          return {
            height: row.getBoundingClientRect().height,
            isStateRight: state !== undefined && name !== undefined && state.left >= name.right,
            areFactsBelow: boxes.slice(4).every(({ top }) => name !== undefined && top >= name.bottom - 4),
            isOrdered: steps !== undefined && model !== undefined && steps.left >= model.right,
            isInside: boxes.every(({ right }) => right <= 400),
          }
        }),
      )
      expect(rows.length).toBeGreaterThan(3)
      for (const row of rows) {
        expect(row).toMatchObject({
          isStateRight: true,
          areFactsBelow: true,
          isOrdered: true,
          isInside: true,
        })
        expect(row.height).toBeLessThan(90)
      }
    })

    it('compares two sessions without a fork from their starts', async () => {
      await page.evaluate(() => (location.hash = '#/compare/expenses/paid'))
      await soon(() => page.locator('.outcome h2').textContent()).toMatch(/^Outcome/)
      await soon(() => page.locator('.outcome tbody tr').nth(2).textContent()).toBe('Steps answered45–')
      await soon(() => page.locator('.common').textContent()).toMatch(/^1 shared record/)
    })

    it('saves a search as a view, shows it again and deletes it', async () => {
      await page.fill('.search input', 'state:completed')
      await page.fill('.save-view input', 'Done')
      await page.keyboard.press('Enter')
      const view = page.getByRole('button', { name: 'Done', exact: true })
      await view.waitFor()
      await page.evaluate(() => (location.hash = '#/'))
      await page.reload()
      await view.click()
      await page.waitForFunction(() => location.hash === '#/find/state%3Acompleted')
      await page.waitForSelector('button[aria-pressed="true"]:text-is("Done")')
      await page.click('text=Delete view Done')
      await view.waitFor({ state: 'detached' })
    })

    it('keeps the search and suggests a correction if a filter has a wrong value', async () => {
      await page.goto(`${page.url().replace(/#.*/, '')}#/find/state%3Aeror`)
      await page.reload()
      await page.waitForSelector('[role=alert]')
      await soon(() => page.locator('[role=alert]').textContent()).toBe(
        "Unknown state 'eror': did you mean error?",
      )
      await soon(() => page.locator('.search input').inputValue()).toBe('state:eror')
      await soon(() => page.locator('text=No matching sessions').count()).toBe(0)
      forgive('400')
    })

    it('announces a session that starts while the list is open', async () => {
      await stage.play('late', 'Are you there?', [{ text: 'Yes.' }])
      await page.waitForSelector('text=Are you there?')
    })
  })

  describe('fifty runs at once', () => {
    openPageForEach()

    it('are shown as they run, with at most one page update per frame', async () => {
      const turns = Array.from({ length: 4 }, (_, at) => ({
        text: 'Word by word.',
        chunkSize: 4,
        chunkDelayMs: 5,
        toolCalls: [{ id: `c${at}`, name: 'look_up', arguments: { word: `${at}` } }],
      }))
      await page.evaluate(() => {
        const seen = { frames: 0, changes: 0 }
        const count = (): void => {
          seen.frames += 1
          requestAnimationFrame(count)
        }
        requestAnimationFrame(count)
        new MutationObserver(() => {
          seen.changes += 1
        }).observe(document.querySelector('.sessions') ?? document.body, { childList: true, subtree: true })
        Object.assign(globalThis, { seen })
      })
      const runs = await stage.begin(50, [...turns, { text: 'That was it.' }])
      await page.waitForSelector('.group-running')
      const results = await Promise.all(runs.map(({ result }) => result))
      expect(new Set(results.map(({ state, error }) => `${state} ${error?.message ?? ''}`))).toEqual(
        new Set(['COMPLETED ']),
      )
      await page.waitForSelector('.group-running', { state: 'detached' })
      await soon(() => page.locator('.session:has-text("live-")').count()).toBe(50)
      await page.setViewportSize({ width: 1440, height: 900 })
      const seen = await page
        .locator('.session')
        .evaluateAll((rows) => rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length)
      expect(seen).toBeGreaterThanOrEqual(12)
      const { frames, changes } = await page.evaluate(
        () => (globalThis as unknown as { seen: { frames: number; changes: number } }).seen,
      )
      expect(changes).toBeGreaterThan(1)
      // A change at the end may belong to a later frame.
      expect(changes).toBeLessThanOrEqual(frames + 1)
    })
  })
}
