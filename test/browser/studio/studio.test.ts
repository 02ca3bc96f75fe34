import { jest } from '@jest/globals'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import type { MomentView, SessionView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
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
  stage = await openStage()
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
  return (await page.evaluate(async (path) => (await fetch(path)).json() as unknown, path)) as View
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
    taken: [
      ...new Set(
        [...document.querySelectorAll('.picture .taken')].flatMap(
          (one) => one.getAttribute('data-transition')?.split('\n') ?? [],
        ),
      ),
    ],
    around: [...document.querySelectorAll('.picture .around')].map((one) => one.getAttribute('data-state')),
    value: document.querySelector('.slider input')?.getAttribute('aria-valuetext') ?? '',
    messages: document.querySelectorAll('.message').length,
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
      for (const id of now.taken.filter((id) => row.taken.includes(id))) expect(row.taken).toContain(id)
      const moment = await get<MomentView>(paths.moment(session, row.seq))
      expect(now.messages).toBe(moment.transcript.length)
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

describe('every screen', () => {
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
  const screens = [
    '#/',
    '#/session/paid',
    '#/compare/paid/stuck',
    '#/chart',
    '#/chart/RUNNING.asking.requesting',
    '#/session/nobody',
  ]

  it.each(['light', 'dark'] as const)('is without serious findings of axe, %s', async (colorScheme) => {
    await page.emulateMedia({ colorScheme })
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
        violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[]
      }
      serious.push(
        ...found.violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .map(({ id, nodes }) => [hash, id, nodes[0]?.html, nodes[0]?.failureSummary, nodes.length]),
      )
    }
    faults = faults.filter((fault) => !fault.includes('404'))
    expect(serious).toEqual([])
  })

  it('says of a session that there is not what is wrong, and where to go', async () => {
    await page.evaluate(() => {
      location.hash = '#/session/nobody'
    })
    await page.waitForSelector('[role=alert] a[href="#/"]')
    faults = faults.filter((fault) => !fault.includes('404'))
  })
})
