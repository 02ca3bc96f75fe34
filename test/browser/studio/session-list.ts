import { openPageForEach, page, stage } from './visit.js'

export function describeSessionList(): void {
  describe('the list of sessions', () => {
    openPageForEach()

    it('has those that wait first, and finds one by its words', async () => {
      const heads = await page.locator('.group h2').allTextContents()
      expect(heads[0]).toMatch(/^Waiting for you/)
      await page.keyboard.press('/')
      await page.keyboard.type('last year')
      await page.waitForFunction(() => document.querySelectorAll('.session').length === 1)
      expect(await page.locator('.session-title').first().textContent()).toContain('last year')
    })

    it('tells of one that begins while it is open', async () => {
      await stage.play('late', 'Are you there?', [{ text: 'Yes.' }])
      await page.waitForSelector('text=Are you there?')
    })
  })

  describe('fifty runs at once', () => {
    openPageForEach()

    it('are shown as they go, put into the page at most once a frame', async () => {
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
      expect(await page.locator('.session:has-text("live-")').count()).toBe(50)
      const { frames, changes } = await page.evaluate(
        () => (globalThis as unknown as { seen: { frames: number; changes: number } }).seen,
      )
      expect(changes).toBeGreaterThan(1)
      // A change at the end may belong to a later frame.
      expect(changes).toBeLessThanOrEqual(frames + 1)
    })
  })
}
