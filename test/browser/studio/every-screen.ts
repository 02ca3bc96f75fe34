import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import { forgive, openPageForEach, page } from './visit.js'

export function describeEveryScreen(): void {
  describe('what is downloaded', () => {
    openPageForEach()

    it('is at most 60 kB, compressed', async () => {
      const files = await Promise.all(
        ['client.js', 'client.css'].map((name) =>
          readFile(new URL(`../../../dist/src/studio/${name}`, import.meta.url)),
        ),
      )
      expect(files.reduce((sum, file) => sum + gzipSync(file).length, 0)).toBeLessThan(60_000)
    })
  })

  describe('every screen', () => {
    openPageForEach()

    const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
    const screens = [
      '#/',
      '#/session/paid',
      '#/session/stuck',
      '#/compare/paid/stuck',
      '#/chart',
      '#/chart/RUNNING.asking.requesting',
      '#/session/nobody',
    ]

    it.each([400, 768, 1280, 1440])(
      'is without findings of axe, light and dark, %i pixels wide',
      async (width) => {
        await page.setViewportSize({ width, height: 800 })
        await page.evaluate(await readFile(axe, 'utf8'))
        const found: unknown[] = []
        for (const hash of screens) {
          await show(hash)
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme })
            // Of all that axe looks at, the dark page has other colours alone.
            const rules = colorScheme === 'dark' ? ", runOnly: ['color-contrast']" : ''
            const { violations } = (await page.evaluate(
              `axe.run({ resultTypes: ['violations']${rules} })`,
            )) as {
              violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
            }
            found.push(
              ...violations.map(({ id, nodes: [first] }) => [
                hash,
                colorScheme,
                id,
                first?.html,
                first?.failureSummary,
              ]),
            )
          }
        }
        forgive('404')
        expect(found).toEqual([])
      },
    )

    it('fits on a page of 400 pixels', async () => {
      await page.setViewportSize({ width: 400, height: 800 })
      const widths: [string, number][] = []
      for (const hash of screens) {
        await show(hash)
        widths.push([hash, await page.evaluate(() => document.documentElement.scrollWidth)])
      }
      forgive('404')
      expect(widths).toEqual(screens.map((hash) => [hash, 400]))
    })

    it('is light or dark as the system is', async () => {
      const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
      await page.emulateMedia({ colorScheme: 'light' })
      const light = await background()
      await page.emulateMedia({ colorScheme: 'dark' })
      expect(await background()).not.toBe(light)
    })

    it('says of a session that there is not what is wrong, and where to go', async () => {
      await show('#/session/nobody')
      await page.waitForSelector('[role=alert] a[href="#/"]')
      forgive('404')
    })

    it('is gone to while the screen before it still has its address to write', async () => {
      await page.evaluate(async () => {
        const field = document.querySelector<HTMLInputElement>('.search input')
        if (field) field.value = 'sky'
        field?.dispatchEvent(new Event('input', { bubbles: true }))
        for (const _ of [1, 2, 3]) await new Promise((resolve) => requestAnimationFrame(resolve))
        // A busy page: when it comes to the address, both the old screen and the new one are due.
        const until = performance.now() + 400
        while (performance.now() < until);
        location.hash = '#/session/paid'
      })
      await page.waitForSelector('.run')
    })
  })
}

async function show(hash: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash
  }, hash)
  await page.waitForSelector('main, .trouble')
  await page.waitForFunction(() => !document.querySelector('.loading'))
}
