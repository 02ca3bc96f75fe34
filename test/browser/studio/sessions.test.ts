import { jest } from '@jest/globals'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { openStage, type Stage } from './stage.js'
import { launchChromium } from '../chromium.js'

jest.setTimeout(90_000)

let browser: Browser
let stage: Stage
let page: Page
let faults: string[] = []

beforeAll(async () => {
  browser = await launchChromium()
  stage = await openStage()
})

afterAll(async () => {
  await browser.close()
  await stage.close()
})

async function openList(options: Parameters<Browser['newPage']>[0] = {}): Promise<void> {
  page = await browser.newPage({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  })
  faults = []
  page.on('pageerror', ({ message }) => faults.push(message))
  await page.goto(stage.url)
  await page.waitForSelector('.session')
}

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

const titles = () => page.locator('.session-title').allInnerTexts()
const waitForTitles = (count: number) =>
  page.waitForFunction((count) => document.querySelectorAll('.session-title').length === count, count)

it('finds sessions by words that were said in them, and leads back to what was found', async () => {
  await openList()
  await page.keyboard.press('/')
  await page.keyboard.type('mostly')
  await waitForTitles(1)
  expect(await titles()).toEqual(['Which colour is the sky?'])
  await page.waitForFunction(() => location.hash === '#/find/mostly')
  await page.locator('.session-link').click()
  await page.waitForSelector('.run')
  await page.goBack()
  await waitForTitles(1)
  expect(await page.locator('.search input').inputValue()).toBe('mostly')
  expect(await page.locator('.lead').innerText()).toMatch(/^1 of \d+ sessions/)
})

it('filters by menus, with the keyboard alone, and sorts', async () => {
  await openList()
  await page.waitForFunction(
    () => document.querySelectorAll('.filter-fields option[value="pay"]').length === 1,
  )
  await page.locator('.filters summary').focus()
  await page.keyboard.press('Enter')
  await page.locator('.filter-fields').getByLabel('Tool').focus()
  await page.keyboard.type('pay')
  await waitForTitles(2)
  expect(await page.locator('.search input').inputValue()).toBe('tool:pay')
  await page.getByLabel('Sort by').selectOption('created')
  await page.waitForFunction(() => document.querySelectorAll('.group').length === 1)
  expect((await titles()).map((title) => title.slice(0, 40))).toEqual(
    ['What was the largest expense of last year', 'What was the largest expense of the quart'].map((title) =>
      title.slice(0, 40),
    ),
  )
  await page.locator('.search input').fill('nothing has these words')
  await page.waitForSelector('.empty')
})

it('has the sub-agents of a session below it, folded', async () => {
  await openList()
  const before = (await titles()).length
  const [folds] = await page.locator('.sub-agents').all()
  await folds?.click()
  await waitForTitles(before + 1)
  expect(await page.locator('.session-list .session-list .session-sub').innerText()).toContain('sub-agent of')
})

it('shows what sessions cost by day, and why some failed, each reason a filter', async () => {
  await openList()
  await page.waitForSelector('.days svg')
  expect(await page.locator('.days svg').first().getAttribute('aria-label')).toMatch(/^Cost by day, from \d/)
  await page.locator('.reason').first().click()
  await page.waitForFunction(() =>
    document.querySelector<HTMLInputElement>('.search input')?.value.startsWith('reason:'),
  )
})

it.each([
  [400, 'light'],
  [768, 'dark'],
  [1280, 'dark'],
  [1440, 'light'],
] as const)(
  'has no fault that axe finds at %i px, %s, and nothing that is cut off',
  async (width, colorScheme) => {
    await openList({ viewport: { width, height: 900 }, colorScheme })
    await page.locator('.filters summary').click()
    await page.locator('.sub-agents').first().click()
    await page.waitForSelector('.session-list .session-list')
    const { scrolls } = await page.evaluate(() => ({
      scrolls: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    }))
    expect(scrolls).toBe(false)
    await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'))
    const { violations } = (await page.evaluate('axe.run()')) as {
      violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
    }
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html, nodes[0]?.failureSummary])).toEqual([])
  },
)
