import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { jest } from '@jest/globals'
import type { Page, Request } from 'playwright-core'
import { launchChromium } from './chromium.js'
import { soon } from './soon.js'

jest.setTimeout(60_000)

const example = fileURLToPath(new URL('../../examples/chat-react/', import.meta.url))
// It has separate packages, which `npm run suite -- browser` and `npm run example -- chat-react` install.
const isInstalled = existsSync(`${example}node_modules/vite`)

const farStore = new URL('far-store.mjs', import.meta.url).href

interface Served {
  page: Page
  close: () => Promise<void>
}

/** The starter as users start it, optionally with another store. */
async function serve(store?: string): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), 'statewright-chat-'))
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, ...environment } = process.env
  const server: ChildProcess = spawn(
    process.execPath,
    [...(store === undefined ? [] : ['--import', farStore]), 'server.mjs'],
    {
      cwd: example,
      env: { ...environment, PORT: '0', CHAT_DIR: folder, ...(store !== undefined && { CHAT_STORE: store }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const browser = await launchChromium()
  const close = async (): Promise<void> => {
    await browser.close()
    server.kill()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const url = await new Promise<string>((resolve, reject) => {
      server.stdout?.on('data', (text: Buffer) => resolve(/http:\S+/.exec(String(text))?.[0] ?? ''))
      server.on('exit', (code) => reject(new Error(`The server has ended with ${code}.`)))
    })
    const page = await browser.newPage()
    await page.goto(url)
    return { page, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function say(page: Page, text: string): Promise<void> {
  const field = page.getByLabel('Message')
  await field.fill(text)
  await field.press('Enter')
}

const rolesOf = (page: Page): Promise<string[]> =>
  page.locator('article').evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset['role'] ?? ''))

const stores: Record<string, () => Promise<{ store?: string; stop?: () => Promise<void> } | null>> = {
  files: () => Promise.resolve({}),
  'files that answer after 5 ms': () => Promise.resolve({ store: 'slow' }),
  Postgres: async () => {
    const { ownPostgres } = (await import('../../scripts/own-postgres.mjs' as string)) as {
      ownPostgres: () => Promise<{ url: string; stop: () => Promise<void> } | null>
    }
    const server = await ownPostgres()
    return server && { store: server.url, stop: () => server.stop() }
  },
}

describe.each(Object.entries(stores))('chat-react on %s', (_, start) => {
  const run = isInstalled ? it : it.skip

  run('is styled, and answers a queued message once, in its place', async () => {
    const started = await start()
    if (started === null) return
    const { page, close } = await serve(started.store)
    try {
      await say(page, 'To Lisbon.')
      const own = page.locator('article[data-role=user]')
      await own.filter({ hasText: 'To Lisbon.' }).waitFor()
      const look = (selector: string) =>
        page
          .locator(selector)
          .first()
          .evaluate((one) => {
            const { backgroundColor, borderTopStyle } = getComputedStyle(one)
            return { backgroundColor, borderTopStyle }
          })
      const sent = await look('[data-role=user] .text')
      expect(sent.backgroundColor).toBe('rgb(36, 50, 74)')
      // While the answer streams.
      await page.getByRole('button', { name: 'Stop' }).waitFor()
      await say(page, 'And back.')
      const queued = page.locator('article[data-queued]')
      await queued.waitFor()
      await soon(() => queued.innerText()).toMatch(/And back\.\s*queued/)
      await soon(() => look('[data-queued] .text')).not.toEqual(sent)
      await soon(() => own.filter({ hasText: 'And back.' }).count()).toBe(1)
      // It stays queued while the first answer waits for the person, even after a reload.
      await page.getByRole('button', { name: '12C' }).waitFor()
      // The page sends no requests while it waits.
      await page.reload({ waitUntil: 'networkidle' })
      await queued.waitFor()
      await page.getByRole('button', { name: '12C' }).click()
      await page.getByRole('button', { name: 'Approve' }).click()
      // Its turn starts when its answer asks for a seat.
      await page.getByRole('button', { name: '12C', disabled: false }).waitFor()
      const roles = ['user', 'assistant', 'user', 'assistant']
      await soon(() => rolesOf(page)).toEqual(roles)
      await soon(() => queued.count()).toBe(0)
      await soon(() => own.filter({ hasText: 'And back.' }).count()).toBe(1)
      await page.reload()
      await page.getByRole('button', { name: '12C', disabled: false }).waitFor()
      await soon(() => rolesOf(page)).toEqual(roles)
    } finally {
      await close()
      await started.stop?.()
    }
  })

  run('shows that an answer was stopped, also after a reload', async () => {
    const started = await start()
    if (started === null) return
    const { page, close } = await serve(started.store)
    try {
      await say(page, 'To Lisbon.')
      await page.getByRole('button', { name: 'Stop' }).click()
      const end = page.locator('.end')
      await end.waitFor()
      await soon(() => end.innerText()).toBe('The answer was cancelled.')
      await page.reload()
      await end.waitFor()
      await soon(() => rolesOf(page)).toEqual(['user', 'assistant'])
    } finally {
      await close()
      await started.stop?.()
    }
  })
})

;(isInstalled ? it : it.skip)(
  'a call of the page is carried out after a reload, with a message queued behind it',
  async () => {
    const { page, close } = await serve()
    try {
      const isResult = (request: Request) => request.postData()?.includes('local_time') === true
      await page.route('**/api/chat', (route) =>
        isResult(route.request()) ? route.abort() : route.continue(),
      )
      const failed = page.waitForEvent('requestfailed', isResult)
      await say(page, 'To Lisbon.')
      await page.getByRole('button', { name: 'Stop' }).waitFor()
      await say(page, 'And back.')
      await page.locator('article[data-queued]').waitFor()
      await failed
      await page.unrouteAll()
      await page.reload()
      await page.getByRole('button', { name: '12C' }).waitFor()
    } finally {
      await close()
    }
  },
)
