import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { openOfficeStage } from './office-stage.js'
import { openQuestionsStage } from './questions-stage.js'
import { openStage } from './stage.js'

/** The widths at which each screen is checked. */
export const widths = [400, 768, 1280, 1440] as const

/** A screen of the studio, and how to reach it. */
export interface Screen {
  name: string
  /** The stage with its data, or a session file. */
  of: 'books' | 'questions' | 'office' | 'readOnly' | 'empty' | 'stately' | 'file'
  /** The URL of its page. */
  hash: string
  /** The selector that must be present. */
  until?: string
  /** Runs before the page opens. */
  prepare?: (page: Page) => Promise<unknown>
  /** The actions from there to the screen. */
  act?: (page: Page) => Promise<unknown>
}

const press =
  (...keys: string[]) =>
  async (page: Page) => {
    for (const key of keys) await page.keyboard.press(key)
  }
const pencil = (selector: string) => async (page: Page) => {
  await page.locator(selector).first().click()
  await page.waitForSelector('.fork')
}
const message = '.panel .message'
const run = (name: string, of: Screen['of'], session: string, more: Partial<Screen> = {}): Screen => ({
  name,
  of,
  hash: `#/session/${session}`,
  until: message,
  ...more,
})

export const screens: readonly Screen[] = [
  { name: 'sessions', of: 'office', hash: '#/', until: '.group-waiting .session' },
  {
    name: 'sessions-filters',
    of: 'books',
    hash: '#/',
    until: '.session',
    act: async (page) => {
      await page.click('.filters summary')
      await page.fill('.search input', 'lisbon tool:pay')
      await page.waitForFunction(() => {
        const text = document.querySelector('.lead')?.textContent ?? ''
        const [, found, all] = /^(\d+) of (\d+) sessions/.exec(text) ?? []
        return found !== '0' && found !== all && !text.includes('not read yet')
      })
      await page.click('.sub-agents')
      await page.waitForSelector('.session.inner')
    },
  },
  {
    name: 'sessions-nothing-found',
    of: 'questions',
    hash: '#/find/unicorn',
    until: 'main .empty, main .lead',
  },
  { name: 'sessions-damaged-read-only', of: 'readOnly', hash: '#/', until: '.read-only' },
  { name: 'sessions-none', of: 'empty', hash: '#/' },
  run('run-approval', 'books', 'expenses', { until: '.pending' }),
  run('run-elicitation', 'office', 'elicits', { until: '.pending' }),
  run('run-running', 'office', 'running'),
  run('run-completed', 'books', 'paid'),
  run('run-sub-agent', 'books', 'paid', {
    act: async (page) => {
      await page.click('.step.child .folds')
      await page.click('.step.inner')
      await page.waitForSelector('.run-title h1:has-text("check_price")')
    },
  }),
  run('run-in-the-middle', 'books', 'paid/9', { act: press('6') }),
  run('run-request', 'books', 'paid', {
    act: async (page) => {
      await press('2')(page)
      await page.waitForSelector('.request .call')
    },
  }),
  run('run-cost', 'books', 'paid', { act: press('5') }),
  run('run-marked', 'books', 'short', {
    act: async (page) => {
      await page.getByRole('button', { name: 'Bad', exact: true }).click()
      await page.getByRole('button', { name: 'Note', exact: true }).click()
      await page.getByLabel('Note on step 1').fill('It was grey.')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.step-mark[title="It was grey."]')
    },
  }),
  run('run-keys', 'books', 'short', { act: press('?') }),
  run('run-halted', 'questions', 'rollout', { act: press('4') }),
  run('run-failed-call', 'questions', 'trips', {
    act: async (page) => {
      await page.click('.chip-failed')
      await page.fill('#find-steps', 'error')
    },
  }),
  run('run-slow', 'questions', 'report', {
    act: async (page) => {
      if ((page.viewportSize()?.width ?? 0) < 1021) return
      await page.locator('.lane .bar').first().hover()
      await page.waitForSelector('.hover-card')
    },
  }),
  run('run-by-record', 'questions', 'report/12', { act: press('3', 't') }),
  run('run-whole-chart', 'questions', 'rollout/9', { act: press('5', 'c') }),
  run('run-search', 'books', 'paid', {
    act: async (page) => {
      await page.fill('#find-messages', 'lisbon')
      await page.press('#find-messages', 'Enter')
    },
  }),
  run('run-step-limit', 'office', 'limit'),
  run('run-error', 'office', 'failed', { until: '.verdict-text' }),
  run('run-hand-off', 'office', 'handoff'),
  run('run-markdown', 'office', 'markdown'),
  run('run-hostile', 'books', 'html'),
  run('run-sleeping', 'office', 'sleeping'),
  run('run-budget', 'office', 'poor', { until: '.verdict-text' }),
  run('run-damaged', 'books', 'damaged', { until: '.verdict-text' }),
  // The page shows the end of such a session before it has loaded all of it.
  run('run-long', 'office', 'archive', { until: '.run:has(.chip-button) .step' }),
  run('run-unknown', 'books', 'unknown', { until: '[role=alert]' }),
  run('what-if-result', 'questions', 'chairs', {
    act: pencil('[aria-label^="What if get_quote had a different"]'),
  }),
  run('what-if-instructions', 'questions', 'chairs', { act: pencil('.message.instructions .edit') }),
  run('what-if-decision', 'books', 'paid', { act: pencil('.decision .edit') }),
  run('compare-what-if', 'questions', 'chairs', {
    act: async (page) => {
      await pencil('[aria-label^="What if get_quote had a different"]')(page)
      await page.fill('.fork textarea', 'Nord asks 1999 EUR.')
      await page.click('.fork [type=submit]')
      await page.waitForSelector('.outcome[aria-busy=false]')
      await page.waitForSelector('.compare-chart .picture svg')
    },
  }),
  { name: 'compare', of: 'books', hash: '#/compare/expenses/paid', until: '.compare-chart svg' },
  run('share', 'books', 'paid', {
    act: async (page) => {
      await page.getByRole('button', { name: 'Share', exact: true }).click()
      await page.waitForSelector('dialog.share')
    },
  }),
  {
    name: 'share-card',
    of: 'questions',
    hash: '#/',
    until: '.session',
    act: (page) => showShared(page, 'trips', 'card'),
  },
  {
    name: 'share-film',
    of: 'questions',
    hash: '#/',
    until: '.session',
    act: (page) => showShared(page, 'trips', 'film'),
  },
  { name: 'chart', of: 'books', hash: '#/chart', until: '.picture svg' },
  { name: 'chart-state', of: 'books', hash: '#/chart/RUNNING.asking.requesting', until: '.about h1' },
  { name: 'file', of: 'file', hash: '', until: message },
  run('stately-offline', 'stately', 'limit', {
    until: '.chart',
    prepare: (page) => page.clock.install(),
    act: async (page) => {
      await page.waitForSelector('.picture svg')
      await page.clock.runFor(9_100)
      await page.waitForSelector('.stately-note:has-text("has not responded")')
      await page.clock.resume()
    },
  }),
]

/** Shows the share dialog's output as readers see it, as a picture on a page. */
async function showShared(page: Page, session: string, form: 'card' | 'film'): Promise<void> {
  await page.evaluate(
    async ([session, form]) => {
      const answer = await fetch(`./api/sessions/${session}/share?form=${form}&texts=1`)
      const { content } = (await answer.json()) as { content: string }
      const image = new Image()
      image.src = `data:image/svg+xml,${encodeURIComponent(content)}`
      image.alt = 'A picture'
      image.style.width = '100%'
      const [main, heading] = [document.createElement('main'), document.createElement('h1')]
      heading.append('What was shared')
      main.append(heading, image)
      document.querySelector('#app')?.replaceChildren(main)
      await image.decode()
    },
    [session, form],
  )
}

/** The stages of all screens. `records` is the approximate length of the longest session. */
export async function openScreens(size: { records?: number } = {}) {
  const books = await openStage()
  const questions = await openQuestionsStage()
  const office = await openOfficeStage(size)
  const folder = await mkdtemp(join(tmpdir(), 'statewright-screens-'))
  const file = join(folder, 'stuck.html')
  await writeFile(file, await books.exported('stuck'))
  const studios = {
    books,
    questions: questions.studio,
    office: office.studio,
    readOnly: office.readOnly,
    empty: office.empty,
    stately: office.stately,
  }
  // Sequential, because an address works only for the first browser that opens it and is then replaced.
  let entering: Promise<unknown> = Promise.resolve()
  const enter = (of: Screen['of'], page: Page) => {
    entering = entering.then(() => page.goto(of === 'file' ? pathToFileURL(file).href : studios[of].url))
    return entering
  }
  return {
    /** Opens a screen in this page. */
    open: async ({ of, hash, until = 'main', prepare, act }: Screen, page: Page) => {
      await prepare?.(page)
      await enter(of, page)
      await page.waitForSelector('main')
      if (hash) await page.goto(page.url().replace(/#.*/, '') + hash)
      await page.waitForSelector(until)
      await page.waitForFunction(() => !document.querySelector('.loading'))
      await act?.(page)
    },
    close: async () => {
      await office.close()
      await questions.close()
      await books.close()
      await rm(folder, { recursive: true })
    },
  }
}
