import { type Browser, type BrowserContext, type Page } from 'playwright-core'
import { launchChromium } from '../chromium.js'
import { openStage, type Stage } from './stage.js'

// One browser and one studio for all tests in them. The files in this folder are parts of `studio.test.ts`.

export let browser: Browser
export let stage: Stage
/** The page of the current test. */
export let page: Page
let context: BrowserContext
let faults: string[] = []

beforeAll(async () => {
  browser = await launchChromium()
  stage = await openStage({ records: 300 })
})

afterAll(async () => {
  await browser.close()
  await stage.close()
})

/** Each test of this `describe` gets a page with the session list. The page must end without errors. */
export function openPageForEach(): void {
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
    // No errors, policy violations, or requests to other servers.
    expect(faults.filter((fault) => !fault.includes('favicon'))).toEqual([])
  })
}

/** Expected errors. */
export function forgive(words: string): void {
  faults = faults.filter((fault) => !fault.includes(words))
}

export const origin = (): string => new URL(stage.url).origin

export async function get<View>(path: string): Promise<View> {
  return (await page.evaluate(async (path) => (await fetch(`.${path}`)).json() as unknown, path)) as View
}

export async function open(session: string, seq?: number): Promise<void> {
  await page.evaluate(
    (hash) => {
      location.hash = hash
    },
    `#/session/${session}${seq === undefined ? '' : `/${seq}`}`,
  )
  await page.waitForSelector('.run')
  await page.waitForSelector('.panel .message')
}

/** The page's label of its current record. */
export const shown = () =>
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
