import { jest } from '@jest/globals'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { createActor, setup } from 'xstate'
import { createAgent, defineTool } from '../../../src/index.js'
import { startStudio } from '../../../src/studio/index.js'
import type { MomentView, SessionView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
import { createOneCallModel } from '../../support/manual-model.js'
import { openStage, type Stage } from './stage.js'

jest.setTimeout(90_000)

let browser: Browser
let stage: Stage
let context: BrowserContext
let page: Page
let faults: string[] = []

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--no-proxy-server'],
  })
  stage = await openStage({ records: 300 })
})

afterAll(async () => {
  await browser.close()
  await stage.close()
})

beforeEach(async () => {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
  page = await context.newPage()
  faults = []
  page.on('pageerror', ({ message }) => faults.push(message))
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(origin())) faults.push(`asked elsewhere: ${request.url()}`)
  })
  await page.goto(stage.url)
  await page.waitForSelector('.sessions')
})

afterEach(async () => {
  await context.close()
  // No error, no breach of the policy, no request to anybody else.
  expect(faults.filter((fault) => !fault.includes('favicon'))).toEqual([])
})

const origin = (): string => new URL(stage.url).origin

async function get<View>(path: string): Promise<View> {
  return (await page.evaluate(async (path) => (await fetch(`.${path}`)).json() as unknown, path)) as View
}

async function open(session: string, seq?: number): Promise<void> {
  await page.evaluate(
    (hash) => {
      location.hash = hash
    },
    `#/session/${session}${seq === undefined ? '' : `/${seq}`}`,
  )
  await page.waitForSelector('.run')
  await page.waitForSelector('.panel .message')
}

/** What the page says of the record that it is at. */
const shown = () =>
  page.evaluate(() => ({
    active: [...document.querySelectorAll('.picture .active')].map((one) => one.getAttribute('data-state')),
    taken: [...document.querySelectorAll('.picture .taken')].map(
      (one) => one.getAttribute('data-transition')?.split('\n') ?? [],
    ),
    drawn: [...document.querySelectorAll('.picture [data-transition]')].flatMap(
      (one) => one.getAttribute('data-transition')?.split('\n') ?? [],
    ),
    around: [...document.querySelectorAll('.picture .around')].map((one) => one.getAttribute('data-state')),
    value: document.querySelector('.slider input')?.getAttribute('aria-valuetext') ?? '',
  }))

describe('what is downloaded', () => {
  it('is at most 60 kB, compressed', async () => {
    const files = await Promise.all(
      ['client.js', 'client.css'].map((name) =>
        readFile(new URL(`../../../dist/src/studio/${name}`, import.meta.url)),
      ),
    )
    expect(files.reduce((sum, file) => sum + gzipSync(file).length, 0)).toBeLessThan(60_000)
  })
})

describe('the list of sessions', () => {
  it('has those that wait first, and finds one by its words', async () => {
    const heads = await page.locator('.group h2').allTextContents()
    expect(heads[0]).toMatch(/^Waiting for you/)
    await page.keyboard.press('/')
    await page.keyboard.type('last year')
    expect(await page.locator('.session').count()).toBe(1)
    expect(await page.locator('.session-title').first().textContent()).toContain('last year')
  })

  it('tells of one that begins while it is open', async () => {
    await stage.play('late', 'Are you there?', [{ text: 'Yes.' }])
    await page.waitForSelector('text=Are you there?')
  })
})

describe('fifty runs at once', () => {
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
    // One that comes at the end may belong to a frame that is still to come.
    expect(changes).toBeLessThanOrEqual(frames + 1)
  })
})

describe('a run', () => {
  it.each(['expenses', 'paid', 'stuck'])('of %s is lit at every record as it stood then', async (session) => {
    const { rows } = await get<SessionView>(paths.session(session))
    await open(session)
    const drawn = new Set(
      await page.evaluate(() =>
        [...document.querySelectorAll('.picture [data-state]')].map((one) => one.getAttribute('data-state')),
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
      // What is lit was taken, and what was taken and is drawn is lit.
      expect(now.taken.filter((ids) => !ids.some((id) => row.taken.includes(id)))).toEqual([])
      const lit = new Set(now.taken.flat())
      expect(row.taken.filter((id) => now.drawn.includes(id) && !lit.has(id))).toEqual([])
      const moment = await get<MomentView>(paths.moment(session, row.seq))
      // The transcript of a moment is fetched when the moment is shown.
      await page.waitForFunction(
        (count) => document.querySelectorAll('.message').length === count,
        moment.transcript.length,
      )
      if (place < rows.length - 1) await page.keyboard.press('ArrowRight')
    }
  })

  it('is walked with the keyboard: records, steps, the ends, and the tabs', async () => {
    const { rows } = await get<SessionView>(paths.session('expenses'))
    await open('expenses')
    const at = async (): Promise<number> => Number((await shown()).value.match(/Record (\d+)/)?.[1])
    await page.keyboard.press('Home')
    expect(await at()).toBe(rows[0]?.seq)
    await page.keyboard.press('Shift+ArrowRight')
    const second = await at()
    expect(rows.find(({ seq }) => seq === second)?.step).not.toBe(rows[0]?.step)
    await page.keyboard.press('Shift+ArrowLeft')
    expect(await at()).toBe(rows[0]?.seq)
    await page.keyboard.press('End')
    expect(await at()).toBe(rows.at(-1)?.seq)
    const button = page.locator('.play')
    await page.keyboard.press(' ')
    expect(await button.getAttribute('aria-label')).toBe('Stop playing')
    await page.waitForFunction(() =>
      document.querySelector('.slider input')?.getAttribute('aria-valuetext')?.startsWith('Record 2 '),
    )
    await page.keyboard.press(' ')
    expect(await button.getAttribute('aria-label')).toBe('Play')
    for (const [key, name] of [
      ['2', 'Record'],
      ['3', 'State'],
      ['4', 'Guards'],
      ['5', 'Budget'],
      ['1', 'Transcript'],
    ] as const) {
      await page.keyboard.press(key)
      expect(await page.locator('[role=tab][aria-selected=true]').textContent()).toBe(name)
    }
  })

  it('lets the token walk to where the machine goes, and jump where less motion is asked for', async () => {
    await open('expenses')
    const token = () => page.evaluate(() => document.querySelector('.token')?.getAttribute('transform'))
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    const [second, third] = [await token(), (await page.keyboard.press('ArrowRight'), await token())]
    expect(third).not.toBe(second)
    await page.emulateMedia({ reducedMotion: 'no-preference' })
    await page.keyboard.press('ArrowLeft')
    expect(await token()).toBe(second)
    await page.keyboard.press('ArrowRight')
    const walking = new Set<unknown>([second, third])
    for (let at = await token(); at !== third; at = await token()) walking.add(at)
    expect(walking.size).toBeGreaterThan(2)
  })

  it('has lanes of what was done when, and in them what a sub-agent did meanwhile', async () => {
    await open('paid')
    // They are there at 1280 × 800, and can be put away.
    await page.click('.lanes-button')
    expect(await page.locator('.lane-name:has-text("Model")').count()).toBe(0)
    await page.click('.lanes-button')
    for (const lane of ['Model', 'Tools', 'Waits'])
      await page.waitForSelector(`.lane-name:has-text("${lane}")`)
    expect(await page.locator('.lane-model .bar.failed').count()).toBe(1)
    // Three notes were read at once.
    expect(await page.locator('.lane-tools.lines-3 .line-2').count()).toBe(1)
    await page.click('.lane .folds')
    await page.waitForSelector('.inner-lane .bar.of-model')
    // By the keyboard, too, which goes on playing elsewhere.
    await page.keyboard.press(' ')
    expect(await page.locator('.inner-lane').count()).toBe(0)
    await page.locator('.lane .folds').press('Enter')
    expect(await page.locator('.lane .folds[aria-expanded=true]').count()).toBe(1)
    await page.click('.lane .folds')
    await page.locator('.lane-children .bar').click()
    await page.keyboard.press('2')
    await page.click('.panel a:has-text("check_price")')
    await page.waitForSelector('h1:has-text("check_price")')
  })

  it('has its records spaced alike, or by time', async () => {
    await open('expenses')
    const left = () =>
      page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('.stretch')].map((one) =>
          Number.parseFloat(one.style.left),
        ),
      )
    const { rows } = await get<SessionView>(paths.session('expenses'))
    expect(await page.locator('.spaces').getAttribute('aria-pressed')).toBe('true')
    expect(await page.locator('.tick').first().textContent()).toBe('+0 ms')
    await page.keyboard.press('t')
    expect(await page.locator('.spaces').getAttribute('aria-pressed')).toBe('false')
    const byRecord = await left()
    await page.locator('.spaces').press('Enter')
    const byTime = await left()
    expect(byTime).not.toEqual(byRecord)
    expect(byTime).toEqual(byTime.toSorted((a, b) => a - b))
    // What is pointed at is the record that lies there.
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

  it('shows a part of its time that is dragged over, and the whole again', async () => {
    await open('paid')
    const ticks = () => page.locator('.tick').allTextContents()
    const before = await ticks()
    const { x = 0, y = 0, width = 0 } = (await page.locator('.lane-model .track').boundingBox()) ?? {}
    await page.mouse.move(x + width * 0.5, y + 8)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.9, y + 8, { steps: 4 })
    await page.mouse.up()
    await page.waitForSelector('.whole')
    expect(await ticks()).not.toEqual(before)
    expect(await ticks()).not.toContain('+0 ms')
    await page.click('.whole')
    expect(await ticks()).toEqual(before)
    // By the keyboard, around the record that is shown.
    await page.keyboard.press('+')
    await page.waitForSelector('.whole')
    expect(await page.locator('.cursor:not([hidden])').count()).toBe(1)
    await page.keyboard.press('0')
    expect(await ticks()).toEqual(before)
    // On the band the drag moves through the records: there is one scrubber.
    const band = (await page.locator('.band .track').boundingBox()) ?? { x: 0, y: 0, width: 0 }
    await page.mouse.move(band.x + band.width * 0.9, band.y + 4)
    await page.mouse.down()
    await page.mouse.move(band.x + 1, band.y + 4, { steps: 4 })
    await page.mouse.up()
    expect((await shown()).value).toMatch(/^Record [12] of/)
    expect(await page.locator('.whole').count()).toBe(0)
  })

  it('says of a bar with what a tool was called and what it returned, as text', async () => {
    await open('html')
    await page.locator('.lane-tools .bar').hover()
    await page.waitForSelector('.hover-card:has-text("<img src=x onerror=")')
    expect(await page.locator('.hover-card').textContent()).toContain('"word": "html"')
    expect(await page.locator('.hover-card img').count()).toBe(0)
    expect(await page.locator('.lane-cost path').count()).toBe(1)
  })

  it('shows at 400 pixels what waits, where the run is, and the way back to its end', async () => {
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
    expect(await page.locator('.dock-now').textContent()).toContain('RUNNING › asking › requesting')
    // In the picture, as far as it is wider than the page.
    for (const key of ['ArrowRight', 'End']) {
      await page.keyboard.press(key)
      await page.evaluate(() => document.querySelector('.picture')?.scrollIntoView())
      expect(await isSeen('.picture .active > rect')).toBe(true)
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(400)
    await page.keyboard.press('ArrowLeft')
    // Nothing is live any more: the way back is to the end.
    expect(await page.locator('.live').textContent()).toBe('End')
    await page.click('.live')
    expect((await shown()).active).toEqual(['COMPLETED'])
    // What waits for somebody is what is seen first.
    await page.evaluate(() => scrollTo(0, 0))
    await open('expenses')
    expect(await isSeen('.pending .primary')).toBe(true)
  })

  it('marks on a sheet what stored sessions took, row by row', async () => {
    await open('paid')
    await page.selectOption('.chart-bar select', 'WAITING_FOR_TOOL')
    const marked = () => page.locator('.picture .row[class*=heat] text').count()
    expect(await marked()).toBe(0)
    await page.click('.segments button:has-text("All sessions")')
    await page.waitForSelector('.picture .row[class*=heat]')
    const [plain, hot] = await page.evaluate(() =>
      ['.picture .row:not([class*=heat]) text', '.picture .row[class*=heat] text'].map((one) => {
        const text = document.querySelector(one)
        return text ? getComputedStyle(text).fill : ''
      }),
    )
    expect(hot).not.toBe(plain)
    await page.click('.segments button:has-text("Never")')
    await page.waitForSelector('.picture .row.never')
  })

  it('takes what a tool or a model wrote for text', async () => {
    await open('html')
    await page.waitForSelector('text=<img src=x onerror=')
    for (const key of ['2', '3']) await page.keyboard.press(key)
    expect(await page.evaluate(() => 'hit' in window)).toBe(false)
    expect(await page.locator('main img, main script').count()).toBe(0)
  })

  it('is jumped in by a state of the chart and by the outline', async () => {
    await open('expenses')
    await page.locator('.picture [data-state="RUNNING.asking.backingOff"]').click()
    expect((await shown()).active).toEqual(['RUNNING.asking.backingOff'])
    await page.locator('.word:has-text("a call needs a person")').click()
    expect((await shown()).active).toEqual(['WAITING_FOR_INPUT.approval'])
    await page.locator('.picture [data-state="RUNNING.asking.backingOff"]').click()
    await page.selectOption('.chart-bar select', 'outline')
    const item = page.locator('[role=treeitem][aria-selected=true]').last()
    expect(await item.getAttribute('aria-label')).toBe('backingOff, active')
    await page.locator('[data-path="WAITING_FOR_TOOL.executing"]').focus()
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[aria-label="executing, active"]')
  })
})

describe('a session at a glance', () => {
  const at = async (): Promise<number> => Number((await shown()).value.match(/Record (\d+)/)?.[1])

  it('says what stopped it, with the key that allows more, and leads to the record', async () => {
    await open('stuck')
    const text = (await page.locator('.verdict-text').textContent()) ?? ''
    expect(text).toMatch(/^Stopped by progress\.stale\. The model has called ping .* 21 times/)
    expect(text).toContain('Of the calls of ping, 5 ran and 16 were refused.')
    expect(await page.locator('.verdict-text code').allTextContents()).toContain(
      'guardrails.progress.stale.haltAt',
    )
    const { rows, verdict } = await get<SessionView>(paths.session('stuck'))
    await page.click('.verdict-buttons >> text=Record')
    expect(await at()).toBe(verdict.seq)
    expect(rows[verdict.seq - 1]?.flags).toContain('halt')
    // The halt is what its mark says, though a nudge and a refusal are there, too.
    expect(await page.locator('.marks .flag-halt svg').count()).toBe(1)
  })

  it('says what it took, and each part leads to its records one after the other', async () => {
    await open('paid')
    const chips = await page.locator('.chip-button').allTextContents()
    expect(chips.join(' | ')).toMatch(
      /model \d+ % · tools \d+ % · waits \d+ % \| 5 steps \| [\d,]+ tokens, 0 % cached \| \$0\.\d+ \| 1 retry/,
    )
    const { rows } = await get<SessionView>(paths.session('paid'))
    await page.click('.chip-retries')
    expect(rows[(await at()) - 1]?.flags).toContain('retry')
    await page.click('.chip-steps')
    const first = await at()
    await page.click('.chip-steps')
    expect(await at()).toBeGreaterThan(first)
  })

  it('lists its steps with their calls, finds some of them, and goes through them by j and k', async () => {
    await open('stuck')
    expect(await page.locator('.step.merged').textContent()).toContain('15 ×')
    await page.fill('#find-steps', 'tool:ping halt')
    await page.waitForFunction(() => document.querySelectorAll('.step').length === 1)
    await page.fill('#find-steps', 'nudge')
    await page.locator('.steps-box').focus()
    await page.keyboard.press('Home')
    const found: number[] = []
    for (let last = await at(); ; last = found.at(-1) ?? 0) {
      await page.keyboard.press('j')
      if ((await at()) === last) break
      found.push(await at())
    }
    expect(found).toHaveLength(2)
    await page.keyboard.press('k')
    expect(await at()).toBe(found[0])
    await page.fill('#find-steps', 'nothing')
    await page.waitForSelector('.steps-box .empty')
  })

  it('shows the steps of a sub-agent below its call, with links both ways', async () => {
    await open('paid')
    await page.click('.step.child .folds')
    await page.click('.step.inner')
    await page.waitForSelector('.run-title h1:has-text("check_price")')
    await page.click('.steps-head a')
    await page.waitForSelector('.run-title h1:has-text("last year")')
  })

  it('draws what the run visited with letters that can be read, and the whole chart by a key', async () => {
    await open('paid')
    const smallest = () =>
      page.evaluate(() => {
        const svg = document.querySelector<SVGSVGElement>('.picture svg')
        const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 0
        const sizes = [...document.querySelectorAll('.picture text')].map((text) =>
          Number(text.getAttribute('font-size')),
        )
        return Math.min(...sizes) * scale
      })
    expect(await smallest()).toBeGreaterThanOrEqual(11.9)
    expect(await page.locator('.picture [data-state=CANCELLED]').count()).toBe(0)
    await page.keyboard.press('c')
    expect(await page.locator('.picture [data-state=CANCELLED]').count()).toBe(1)
  })
})

describe('a long session', () => {
  it('is there at its end first, and whole in a moment', async () => {
    // A studio that has read nothing yet, and whose whole log keeps somebody waiting.
    const studio = await startStudio({ store: stage.store })
    try {
      await page.goto(studio.url)
      await page.waitForSelector('.sessions')
      let release = (): void => undefined
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      await page.route(/sessions\/long$/, async (route) => {
        await held
        await route.continue()
      })
      await page.evaluate(() => {
        location.hash = '#/session/long'
      })
      await page.waitForSelector('.panel .message')
      const count = (await stage.store.read('long')).length
      expect((await shown()).value).toMatch(new RegExp(`^Record ${count} of ${count}: `))
      expect((await shown()).active).toEqual(['COMPLETED'])
      await page.keyboard.press('Home')
      expect((await shown()).value).toMatch(/^Record 1 of \d+: …/)
      release()
      await page.waitForFunction(() =>
        document.querySelector('.slider input')?.getAttribute('aria-valuetext')?.includes(': opened'),
      )
      await page.keyboard.press('ArrowRight')
      expect((await shown()).active).toEqual(['RUNNING.asking.requesting'])
      await page.goto('about:blank')
      faults = faults.filter((fault) => !fault.includes('asked elsewhere'))
    } finally {
      await studio.close()
    }
  })
})

describe('an embedded actor', () => {
  it('is shown as it works, and approved in the page, from its own machine', async () => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      needsApproval: true,
      execute: () => 'Paid.',
    })
    const agent = createAgent({ model: createOneCallModel('pay'), tools: [pay] })
    const desk = setup({ actors: { agent: agent.machine } }).createMachine({
      invoke: { id: 'agent', src: 'agent', input: () => agent.createInput('Pay what is due.') },
    })
    const { agent: child } = createActor(desk).start().getSnapshot().children
    if (!child) throw new Error('The machine has no child.')
    stage.studio.attach(child)
    await page.click('.session a:has-text("Pay what is due.")')
    await page.waitForSelector('.pending')
    expect((await shown()).active).toEqual(['WAITING_FOR_INPUT.approval'])
    await page.click('.pending button:has-text("Approve")')
    await page.waitForSelector('.run-title .pill.tone-good')
    expect((await shown()).active).toEqual(['COMPLETED'])
    expect(await page.locator('.message:has-text("Done.")').count()).toBe(1)
    expect(child.getSnapshot().status).toBe('done')
    // Nothing on the page offers a fork that the studio would refuse.
    expect(await page.locator('.message .edit').count()).toBe(0)
  })
})

describe('what a person does', () => {
  it('approves as edited in the page, and the run completes with the tool carried out once', async () => {
    const before = stage.paid().length
    await open('expenses')
    await page.fill('.pending textarea', '{ "to": "Casa Lisboa", "amount": "much" }')
    await page.click('text=Approve as edited')
    await page.waitForSelector('.actions .refusal')
    faults = faults.filter((fault) => !fault.includes('400'))
    await page.fill('.pending textarea', '{ "to": "Casa Lisboa", "amount": 3800 }')
    await page.click('text=Approve as edited')
    await page.waitForSelector('.run-title .pill.tone-good')
    expect(stage.paid().slice(before)).toEqual([3800])
    expect((await shown()).active).toEqual(['COMPLETED'])
  })

  it('forks with other words, and the other session stays as it is', async () => {
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

describe('when something is not there', () => {
  it('says that the store is away, keeps what it shows, and goes on when it is back', async () => {
    stage.setAway(true)
    await page.waitForSelector('.problem')
    expect(await page.locator('.session').count()).toBeGreaterThan(4)
    stage.setAway(false)
    await page.waitForSelector('.problem', { state: 'detached' })
  })

  it('shows a damaged session as damaged, and the others as they are', async () => {
    const row = page.locator('.group-damaged .session')
    expect(await row.textContent()).toContain('damaged')
    await row.locator('a').click()
    // What stands before the damage can still be walked.
    expect(await page.locator('.verdict-text').textContent()).toMatch(/^Damaged: .*record/)
    expect(await page.locator('.run-title .pill').textContent()).toBe('damaged')
    expect((await shown()).value).toContain('Record 2 of 2')
  })

  it('is read-only without an agent, and says how to get the actions', async () => {
    const studio = await startStudio({ store: stage.store })
    try {
      await page.goto(studio.url)
      await page.waitForSelector('.sessions .read-only')
      await page.goto(`${page.url().replace(/#.*/, '')}#/session/stuck`)
      await page.waitForSelector('.panel .message')
      expect(await page.locator('.actions button, .edit, .run-head button').count()).toBe(0)
      // It would ask again and again when nobody listens any more.
      await page.goto('about:blank')
      faults = faults.filter((fault) => !fault.includes('asked elsewhere'))
    } finally {
      await studio.close()
    }
  })
})

describe('a session as one file', () => {
  it('is walked as in the studio, asks nobody for anything, and offers nothing to do', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'statewright-file-'))
    try {
      const file = join(folder, 'stuck.html')
      await writeFile(file, await stage.exported('stuck'))
      const { rows } = await get<SessionView>(paths.session('stuck'))
      const asked: string[] = []
      page.on('request', (request) => asked.push(request.url()))
      await page.goto(pathToFileURL(file).href)
      await page.waitForSelector('.panel .message')
      await page.keyboard.press('Home')
      for (const row of rows) {
        const now = await shown()
        expect([now.value.includes(`Record ${row.seq} of`), new Set(now.active)]).toEqual([
          true,
          new Set(row.to),
        ])
        await page.keyboard.press('ArrowRight')
      }
      expect(asked.filter((url) => !url.startsWith('data:'))).toEqual([pathToFileURL(file).href])
      expect(await page.locator('.actions, .edit, .live').count()).toBe(0)
      faults = faults.filter((fault) => !fault.includes('asked elsewhere'))
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('every screen', () => {
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

  it.each([
    ['light', 400],
    ['dark', 400],
    ['light', 768],
    ['dark', 768],
    ['light', 1280],
    ['dark', 1280],
    ['light', 1440],
    ['dark', 1440],
  ] as const)('is without findings of axe, %s, %i pixels wide', async (colorScheme, width) => {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 800 })
    const source = await readFile(axe, 'utf8')
    const serious: unknown[] = []
    for (const hash of screens) {
      await page.evaluate((hash) => {
        location.hash = hash
      }, hash)
      await page.waitForSelector('main, .trouble')
      await page.waitForFunction(() => !document.querySelector('.loading'))
      await page.evaluate(source)
      const found = (await page.evaluate('axe.run()')) as {
        violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
      }
      serious.push(
        ...found.violations.map(({ id, nodes }) => [
          hash,
          width,
          id,
          nodes[0]?.html,
          nodes[0]?.failureSummary,
          nodes.length,
        ]),
      )
    }
    faults = faults.filter((fault) => !fault.includes('404'))
    expect(serious).toEqual([])
  })

  it('fits on a page of 400 pixels', async () => {
    await page.setViewportSize({ width: 400, height: 800 })
    const widths: [string, number][] = []
    for (const hash of screens) {
      await page.evaluate((hash) => {
        location.hash = hash
      }, hash)
      await page.waitForSelector('main, .trouble')
      await page.waitForFunction(() => !document.querySelector('.loading'))
      widths.push([hash, await page.evaluate(() => document.documentElement.scrollWidth)])
    }
    faults = faults.filter((fault) => !fault.includes('404'))
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
    await page.evaluate(() => {
      location.hash = '#/session/nobody'
    })
    await page.waitForSelector('[role=alert] a[href="#/"]')
    faults = faults.filter((fault) => !fault.includes('404'))
  })
})
