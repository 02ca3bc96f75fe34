import { gzipSync } from 'node:zlib'
import type { ChartView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
import { findFaults } from './find-faults.js'
import { openScreens, screens as allScreens, widths as allWidths } from './screens.js'
import { browser, forgive, get, open, openPageForEach, page } from './visit.js'
import { soon } from '../soon.js'

export function describeEveryScreen(): void {
  describe('the download', () => {
    openPageForEach()

    it('is at most 75 kB compressed, and loads the share dialog on demand', async () => {
      const files = new Map<string, Promise<Buffer>>()
      page.on('response', (response) => {
        const name = /[\w-]+\.(?:js|css)$/.exec(response.url())?.[0]
        if (name) files.set(name, response.body())
      })
      await page.reload()
      await page.waitForSelector('.session')
      await open('paid')
      const bodies = await Promise.all(files.values())
      expect(bodies.length).toBeGreaterThan(2)
      expect(bodies.reduce((sum, body) => sum + gzipSync(body).length, 0)).toBeLessThan(75_000)
      await openShare()
      expect(files.size).toBe(bodies.length + 1)
    })
  })

  describe('every screen', () => {
    openPageForEach()

    const screens = [
      '#/',
      '#/session/paid',
      '#/session/stuck',
      '#/compare/paid/stuck',
      '#/compare/expenses/paid',
      '#/chart',
      '#/chart/RUNNING.asking.requesting',
      '#/session/nobody',
    ]

    // One width per layout. The screens below also run at the other widths.
    it.each([400, 1280])('has no findings of axe, light and dark, %i pixels wide', async (width) => {
      await page.setViewportSize({ width, height: 800 })
      const found: unknown[] = []
      for (const hash of [...screens, '#/session/paid/2']) {
        await show(hash)
        if (hash === '#/session/paid/2') await openShare()
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          const faults = await findFaults(page, { coloursAlone: colorScheme === 'dark' })
          found.push(...faults.map((fault) => [hash, colorScheme, fault]))
        }
      }
      forgive('404')
      expect(found).toEqual([])
    })

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

    it('fills the window with a run', async () => {
      await page.setViewportSize({ width: 1280, height: 800 })
      await show('#/session/paid')
      expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(800)
    })

    it('shows a state on the whole chart if opened by its address', async () => {
      await show('#/chart/RUNNING.asking.requesting')
      await page.waitForSelector('.picture [data-state="RUNNING.asking.requesting"].active')
      await soon(() => page.locator('.picture [data-state=CANCELLED]').count()).toBe(1)
      // A fault of a state is not repeated for each of its transitions.
      const { description: reported } = await get<ChartView>(paths.chart)
      expect(reported).not.toBe('')
      await soon(() => page.locator('.transitions').allTextContents()).not.toContainEqual(
        expect.stringContaining(reported),
      )
    })

    it('follows the color scheme of the system', async () => {
      const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
      await page.emulateMedia({ colorScheme: 'light' })
      const light = await background()
      await page.emulateMedia({ colorScheme: 'dark' })
      await soon(() => background()).not.toBe(light)
    })

    it('explains what is missing from a session, and where to go', async () => {
      await show('#/session/nobody')
      await page.waitForSelector('[role=alert] a[href="#/"]')
      forgive('404')
    })

    it.each(['before', 'after'])(
      'is opened although the previous screen writes its address just %s the page receives the step',
      async (moment) => {
        await page.evaluate(async (moment) => {
          const timers = new Map<unknown, () => void>()
          const { setTimeout, clearTimeout } = globalThis
          globalThis.setTimeout = ((call: () => void, ms: number) => {
            const timer = setTimeout(call, ms)
            if (ms === 250) timers.set(timer, call)
            return timer
          }) as typeof setTimeout
          globalThis.clearTimeout = (timer) => {
            timers.delete(timer)
            clearTimeout(timer)
          }
          const field = document.querySelector<HTMLInputElement>('.search input')
          if (field) field.value = 'sky'
          field?.dispatchEvent(new Event('input', { bubbles: true }))
          while (timers.size === 0) await new Promise((resolve) => setTimeout(resolve, 5))
          const write = () => {
            for (const call of timers.values()) call()
          }
          location.hash = '#/session/nobody'
          if (moment === 'before') write()
          else addEventListener('hashchange', write)
        }, moment)
        await page.waitForSelector('[role=alert] a[href="#/"]')
        expect(new URL(page.url()).hash).toBe('#/session/nobody')
        forgive('404')
      },
    )
  })

  // Each at one width and in one colour scheme. `npm run pictures` covers all of them.
  describe('a screen', () => {
    let stage: Awaited<ReturnType<typeof openScreens>>

    beforeAll(async () => {
      stage = await openScreens()
    })

    afterAll(() => stage.close())

    it.each(
      allScreens.map((screen, at) => ({
        ...screen,
        width: allWidths[at % 4] ?? 400,
        colorScheme: at % 8 < 4 ? ('light' as const) : ('dark' as const),
      })),
    )('$name has no findings of axe, $width pixels wide, $colorScheme', async (screen) => {
      const { width, colorScheme } = screen
      const viewport = { width, height: 800 }
      const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' })
      try {
        await stage.open(screen, page)
        await soon(() => findFaults(page)).toEqual([])
        await soon(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
      } finally {
        await page.close()
      }
    })
  })
}

async function openShare(): Promise<void> {
  await page.getByRole('button', { name: 'Share' }).click()
  await page.waitForSelector('dialog.share')
}

async function show(hash: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash
  }, hash)
  await page.waitForSelector('main, .trouble')
  await page.waitForFunction(() => !document.querySelector('.loading'))
}
