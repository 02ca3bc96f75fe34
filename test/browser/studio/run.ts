import type { MomentView, SessionView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
import { get, open, openPageForEach, page, shown } from './visit.js'
import { soon } from '../soon.js'

export function describeRun(): void {
  describe('a run', () => {
    openPageForEach()

    it.each(['expenses', 'paid', 'stuck'])('highlights the state of %s at every record', async (session) => {
      const { rows } = await get<SessionView>(paths.session(session))
      await open(session)
      const drawn = new Set(
        await page.evaluate(() =>
          [...document.querySelectorAll('.picture [data-state]')].map((one) =>
            one.getAttribute('data-state'),
          ),
        ),
      )
      await page.keyboard.press('Home')
      for (const [place, row] of rows.entries()) {
        const now = await shown()
        expect(now.value).toContain(`Record ${row.seq} of ${rows.length}`)
        expect(new Set(now.active)).toEqual(new Set(row.to))
        expect(row.to.every((path) => drawn.has(path))).toBe(true)
        const around = row.to.flatMap((path) =>
          path.split('.').map((_, at, parts) => parts.slice(0, at + 1).join('.')),
        )
        expect(new Set(now.around)).toEqual(new Set(around))
        // Highlighted transitions were taken, and taken transitions in the picture are highlighted.
        expect(now.taken.filter((ids) => !ids.some((id) => row.transitionIds.includes(id)))).toEqual([])
        const lit = new Set(now.taken.flat())
        expect(row.transitionIds.filter((id) => now.drawn.includes(id) && !lit.has(id))).toEqual([])
        const moment = await get<MomentView>(paths.moment(session, row.seq))
        // The page fetches a moment's transcript when it shows the moment.
        const offset = moment.instructions && moment.transcript.length > 0 ? 1 : 0
        await page.waitForFunction(
          ([count, reported]) =>
            document.querySelectorAll('.message:not(.instructions)').length === count &&
            document.querySelectorAll('.message.instructions').length === reported,
          [moment.transcript.length, offset] as const,
        )
        if (place < rows.length - 1) await page.keyboard.press('ArrowRight')
      }
    })

    it('is navigated with the keyboard: records, steps, the ends, and the tabs', async () => {
      const { rows } = await get<SessionView>(paths.session('expenses'))
      await open('expenses')
      const at = async (): Promise<number> => Number((await shown()).value.match(/Record (\d+)/)?.[1])
      await page.keyboard.press('Home')
      await soon(() => at()).toBe(rows[0]?.seq)
      await page.keyboard.press('Shift+ArrowRight')
      const second = await at()
      expect(rows.find(({ seq }) => seq === second)?.step).not.toBe(rows[0]?.step)
      await page.keyboard.press('Shift+ArrowLeft')
      await soon(() => at()).toBe(rows[0]?.seq)
      await page.keyboard.press('End')
      await soon(() => at()).toBe(rows.at(-1)?.seq)
      const button = page.locator('.play')
      await page.keyboard.press(' ')
      await soon(() => button.getAttribute('aria-label')).toBe('Stop playing')
      await page.waitForFunction(() =>
        document.querySelector('.slider input')?.getAttribute('aria-valuetext')?.startsWith('Record 2 '),
      )
      await page.keyboard.press(' ')
      await soon(() => button.getAttribute('aria-label')).toBe('Play')
      for (const [key, name] of [
        ['2', 'Request'],
        ['3', 'State'],
        ['4', 'Guards'],
        ['5', 'Cost'],
        ['6', 'Record'],
        ['1', 'Transcript'],
      ] as const) {
        await page.keyboard.press(key)
        await soon(() => page.locator('[role=tab][aria-selected=true]').textContent()).toBe(name)
      }
    })

    it('draws a record once, and requests no known part of the chart again', async () => {
      const records = 5
      const { length: start } = (await get<SessionView>(paths.session('paid'))).rows
      // Opens at a record, so that the page reads the whole session instead of its end first.
      await open('paid', start)
      const step = async (seq: number) => {
        await page.keyboard.press('ArrowLeft')
        await page.waitForFunction(
          (seq) => document.querySelector('.json-root .json-leaf')?.textContent === `seq${seq}`,
          seq,
        )
      }
      // The raw record tab shows which moment is displayed.
      await page.keyboard.press('6')
      for (let at = 1; at <= records; at += 1) await step(start - at)
      await page.keyboard.press('1')
      await page.waitForSelector('.panel .message')
      const before = { drawn: 0, measured: 0 }
      await page.evaluate((counts) => {
        Object.assign(globalThis, { counts })
        const count = (of: object, name: string, kind: 'drawn' | 'measured'): void => {
          const own = Reflect.get(of, name) as (...args: unknown[]) => unknown
          Reflect.set(of, name, function (this: unknown, ...args: unknown[]) {
            counts[kind] += 1
            return own.apply(this, args)
          })
        }
        // The transcript removes old search marks on each render.
        count(HighlightRegistry.prototype, 'delete', 'drawn')
        count(SVGGraphicsElement.prototype, 'getBBox', 'measured')
        count(SVGGeometryElement.prototype, 'getPointAtLength', 'measured')
        count(SVGGeometryElement.prototype, 'getTotalLength', 'measured')
      }, before)
      for (let at = records - 1; at >= 0; at -= 1) {
        await page.keyboard.press('ArrowRight')
        await page.waitForFunction(
          (seq) =>
            document
              .querySelector('.slider input')
              ?.getAttribute('aria-valuetext')
              ?.startsWith(`Record ${seq} `),
          start - at,
        )
      }
      const { drawn, measured } = await page.evaluate(
        () => Reflect.get(globalThis, 'counts') as typeof before,
      )
      expect(measured).toBe(0)
      expect(drawn).toBeGreaterThanOrEqual(records)
      // Twice this number if each moment rendered again after its load. The rest is slack for other page
      // updates.
      expect(drawn).toBeLessThan(records * 1.5)
    })

    it('moves the token along transitions, and lets it jump with reduced motion', async () => {
      await open('expenses')
      const token = () => page.evaluate(() => document.querySelector('.token')?.getAttribute('transform'))
      await page.keyboard.press('Home')
      await page.keyboard.press('ArrowRight')
      const [second, third] = [await token(), (await page.keyboard.press('ArrowRight'), await token())]
      expect(third).not.toBe(second)
      await page.emulateMedia({ reducedMotion: 'no-preference' })
      await page.keyboard.press('ArrowLeft')
      await soon(() => token()).toBe(second)
      await page.keyboard.press('ArrowRight')
      const walking = new Set<unknown>([second, third])
      for (let at = await token(); at !== third; at = await token()) walking.add(at)
      expect(walking.size).toBeGreaterThan(2)
    })

    it('has lanes for its activities, including those of a sub-agent', async () => {
      await open('paid')
      // They are visible at 1280 × 800 and can be closed.
      await page.click('.lanes-button')
      await soon(() => page.locator('.lane-name:has-text("Model")').count()).toBe(0)
      await page.click('.lanes-button')
      for (const lane of ['Model', 'Tools', 'Waits'])
        await page.waitForSelector(`.lane-name:has-text("${lane}")`)
      await soon(() => page.locator('.lane-model .bar.failed').count()).toBe(1)
      // The page read three notes at once.
      await soon(() =>
        page.locator('.lane-tools[style*="--lines: 3"] .bar[style*="--line: 2"]').count(),
      ).toBe(1)
      await page.click('.lane .folds')
      await page.waitForSelector('.inner-lane .bar.of-model')
      // Also with the keyboard, which keeps playing elsewhere.
      await page.keyboard.press(' ')
      await soon(() => page.locator('.inner-lane').count()).toBe(0)
      await page.locator('.lane .folds').press('Enter')
      await soon(() => page.locator('.lane .folds[aria-expanded=true]').count()).toBe(1)
      await page.click('.lane .folds')
      await page.locator('.lane-children .bar').click()
      await page.keyboard.press('6')
      await page.click('.panel a:has-text("check_price")')
      await page.waitForSelector('h1:has-text("check_price")')
    })

    it('spaces its records evenly, or by time', async () => {
      await open('expenses')
      const left = () =>
        page.evaluate(() =>
          [...document.querySelectorAll<HTMLElement>('.stretch')].map((one) =>
            Number.parseFloat(one.style.left),
          ),
        )
      const { rows } = await get<SessionView>(paths.session('expenses'))
      await soon(() => page.locator('.spaces').getAttribute('aria-pressed')).toBe('true')
      await soon(() => page.locator('.tick').first().textContent()).toBe('+0 ms')
      await page.keyboard.press('t')
      await soon(() => page.locator('.spaces').getAttribute('aria-pressed')).toBe('false')
      const byRecord = await left()
      await page.locator('.spaces').press('Enter')
      const byTime = await left()
      expect(byTime).not.toEqual(byRecord)
      expect(byTime).toEqual(byTime.toSorted((a, b) => a - b))
      // The pointer selects the record under it.
      await page
        .locator('.stretch')
        .nth(1)
        .click({ position: { x: 1, y: 4 } })
      const at = Number((await shown()).value.match(/Record (\d+)/)?.[1])
      expect(rows.find(({ seq }) => seq === at)?.to[0]).toMatch(/^RUNNING\.asking/)
      const cursor = await page.evaluate(() =>
        Number.parseFloat(document.querySelector<HTMLElement>('.cursor')?.style.left ?? ''),
      )
      expect(cursor).toBeCloseTo(byTime[1] ?? 0, 6)
    })

    it('zooms into a dragged part of its timeline, and back out', async () => {
      await open('paid')
      const ticks = () => page.locator('.tick').allTextContents()
      const before = await ticks()
      const { x = 0, y = 0, width = 0 } = (await page.locator('.lane-model .track').boundingBox()) ?? {}
      await page.mouse.move(x + width * 0.5, y + 8)
      await page.mouse.down()
      await page.mouse.move(x + width * 0.9, y + 8, { steps: 4 })
      await page.mouse.up()
      await page.waitForSelector('.whole')
      await soon(() => ticks()).not.toEqual(before)
      await soon(() => ticks()).not.toContain('+0 ms')
      await page.click('.whole')
      await soon(() => ticks()).toEqual(before)
      // With the keyboard, around the displayed record.
      await page.keyboard.press('+')
      await page.waitForSelector('.whole')
      await soon(() => page.locator('.cursor:not([hidden])').count()).toBe(1)
      await page.keyboard.press('0')
      await soon(() => ticks()).toEqual(before)
      // Dragging on the band moves through the records, because there is one scrubber.
      const band = (await page.locator('.band .track').boundingBox()) ?? { x: 0, y: 0, width: 0 }
      await page.mouse.move(band.x + band.width * 0.9, band.y + 4)
      await page.mouse.down()
      await page.mouse.move(band.x + 1, band.y + 4, { steps: 4 })
      await page.mouse.up()
      expect((await shown()).value).toMatch(/^Record [12] of/)
      await soon(() => page.locator('.whole').count()).toBe(0)
    })

    it('states at a bar the arguments and the result of a tool call, as text', async () => {
      await open('html')
      await page.locator('.lane-tools .bar').hover()
      await page.waitForSelector('.hover-card:has-text("<img src=x onerror=")')
      await soon(() => page.locator('.hover-card').textContent()).toContain('"word": "html"')
      await soon(() => page.locator('.hover-card img').count()).toBe(0)
      await soon(() => page.locator('.lane-cost path').count()).toBe(1)
    })

    it('shows pending requests, its current state, and the way back to its end at 400 pixels', async () => {
      await page.setViewportSize({ width: 400, height: 800 })
      await open('paid')
      await page.keyboard.press('Home')
      await page.keyboard.press('ArrowRight')
      const isSeen = (selector: string) =>
        page.evaluate((selector) => {
          const { left, right, top, bottom, width } =
            document.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect()
          return width > 0 && left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight
        }, selector)
      for (const scroll of [0, 400, 4_000]) {
        await page.evaluate((top) => scrollTo(0, top), scroll)
        expect([await isSeen('.dock-now'), await isSeen('.live')]).toEqual([true, true])
      }
      await soon(() => page.locator('.dock-now').textContent()).toContain('RUNNING › asking › requesting')
      // In the picture, which is wider than the page, the name of the active state.
      await page.keyboard.press('7')
      for (const key of ['ArrowRight', 'End']) {
        await page.keyboard.press(key)
        await page.evaluate(() => document.querySelector('.picture')?.scrollIntoView())
        await soon(() => isSeen('.picture .active > text')).toBe(true)
      }
      await soon(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(400)
      await page.keyboard.press('ArrowLeft')
      // The session is no longer live, so the link leads to the end.
      await soon(() => page.locator('.live').textContent()).toBe('End')
      await page.click('.live')
      expect((await shown()).active).toEqual(['COMPLETED'])
      // A pending question is visible first.
      await page.evaluate(() => scrollTo(0, 0))
      await open('expenses')
      await soon(() => isSeen('.pending .primary')).toBe(true)
    })

    it('shows the question, every tab and a short timeline at 1024 × 768', async () => {
      await page.setViewportSize({ width: 1024, height: 768 })
      await open('expenses')
      const seen = await page.evaluate(() =>
        [
          '.pending .primary',
          '.pending button:nth-of-type(2)',
          ...Array.from({ length: 7 }, (_, i) => `[role=tab]:nth-child(${i + 1})`),
        ].map((selector) => {
          const box = document.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect()
          return box.width > 0 && box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight
        }),
      )
      expect(seen).toEqual(seen.map(() => true))
      expect(seen).toHaveLength(9)
      await soon(() => page.locator('.lane-model').count()).toBe(0)
      await soon(() => page.locator('.chart').count()).toBe(0)
      await page.click('[role=tab]:has-text("Chart")')
      await page.waitForSelector('.panel .picture .active')
    })

    it.each(['1', '2', '3', '4', '5', '6'])('has at most five text sizes on tab %s', async (key) => {
      await open('expenses')
      await page.keyboard.press(key)
      await page.waitForFunction(() => !document.querySelector('.loading'))
      const sizes = await page.evaluate(() => {
        const found = new Set<string>()
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
        for (let node = texts.nextNode(); node; node = texts.nextNode()) {
          const holder = node.parentElement
          const isText =
            (node.nodeValue ?? '').trim() !== '' && holder?.closest('svg, script, style, dialog') === null
          if (holder && isText && holder.getClientRects().length > 0)
            found.add(getComputedStyle(holder).fontSize)
        }
        return [...found]
      })
      expect(sizes.length).toBeLessThanOrEqual(5)
      expect(sizes.length).toBeGreaterThan(2)
    })

    it('scales the chart with buttons, and moves it with the pointer without following a link', async () => {
      await open('paid')
      const width = () => page.locator('.picture svg').evaluate((svg) => svg.getBoundingClientRect().width)
      const before = await width()
      await page.click('[aria-label="Larger"]')
      await soon(() => width()).toBeCloseTo(before * 1.25, -1)
      await page.click('text=Fit')
      const { picture, frame } = await page.evaluate(() => ({
        picture: document.querySelector('.picture svg')?.getBoundingClientRect().height ?? 0,
        frame: document.querySelector('.picture')?.clientHeight ?? 0,
      }))
      expect(picture).toBeLessThanOrEqual(frame + 1)
      for (let i = 0; i < 6; i += 1) await page.click('[aria-label="Larger"]')
      const at = await shown()
      const box = (await page.locator('.picture').boundingBox()) ?? { x: 0, y: 0 }
      const scrolled = () => page.locator('.picture').evaluate(({ scrollTop }) => scrollTop)
      const top = await scrolled()
      await page.mouse.move(box.x + 120, box.y + 140)
      await page.mouse.down()
      await page.mouse.move(box.x + 120, box.y + (top > 60 ? 200 : 60), { steps: 4 })
      await page.mouse.up()
      await soon(() => scrolled()).not.toBe(top)
      await soon(() => shown()).toEqual(at)
    })

    it('highlights on a sheet the rows that stored sessions took', async () => {
      await open('paid')
      await page.selectOption('.chart-bar select', 'WAITING_FOR_TOOL')
      const marked = () => page.locator('.picture .row[class*=heat] text').count()
      await soon(() => marked()).toBe(0)
      await page.click('.segments button:has-text("All sessions")')
      await page.waitForSelector('.picture .row[class*=heat]')
      const [plain, hot] = await page.evaluate(() =>
        ['.picture .row:not([class*=heat]) text', '.picture .row[class*=heat] text'].map((one) => {
          const text = document.querySelector(one)
          return text ? getComputedStyle(text).fill : ''
        }),
      )
      expect(hot).not.toBe(plain)
      await page.click('.segments button:has-text("Never taken")')
      await page.waitForSelector('.picture .row.never')
    })

    it('shows the output of a tool or a model as text', async () => {
      await open('html')
      await page.waitForSelector('text=<img src=x onerror=')
      for (const key of ['2', '3']) await page.keyboard.press(key)
      await soon(() => page.evaluate(() => 'hit' in window)).toBe(false)
      await soon(() => page.locator('main img, main script').count()).toBe(0)
    })

    it('jumps to a state of the chart, and to an entry of the outline', async () => {
      await open('expenses')
      await page.locator('.picture [data-state="RUNNING.asking.backingOff"]').click()
      expect((await shown()).active).toEqual(['RUNNING.asking.backingOff'])
      await page.locator('.word:has-text("a call needs approval")').click()
      expect((await shown()).active).toEqual(['WAITING_FOR_INPUT.approval'])
      await page.locator('.picture [data-state="RUNNING.asking.backingOff"]').click()
      await page.selectOption('.chart-bar select', 'outline')
      const item = page.locator('[role=treeitem][aria-selected=true]').last()
      await soon(() => item.getAttribute('aria-label')).toBe('backingOff, active')
      await page.locator('[data-path="WAITING_FOR_TOOL.executing"]').focus()
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.waitForSelector('[aria-label="executing, active"]')
    })
  })
}
