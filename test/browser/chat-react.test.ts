import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { jest } from '@jest/globals'
import { launchChromium } from './chromium.js'

jest.setTimeout(60_000)

const example = fileURLToPath(new URL('../../examples/chat-react/', import.meta.url))
// It has packages of its own, which `npm run test:browser` and `npm run chat:react` install.
const isInstalled = existsSync(`${example}node_modules/vite`)

;(isInstalled ? it : it.skip)(
  'chat-react is styled, shows a message that waits for its turn as one, and says it once',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'statewright-chat-'))
    const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, ...environment } = process.env
    const server: ChildProcess = spawn(process.execPath, ['server.mjs'], {
      cwd: example,
      env: { ...environment, PORT: '0', CHAT_DIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const browser = await launchChromium()
    try {
      const url = await new Promise<string>((resolve, reject) => {
        server.stdout?.on('data', (said: Buffer) => resolve(/http:\S+/.exec(String(said))?.[0] ?? ''))
        server.on('exit', (code) => reject(new Error(`The server has ended with ${code}.`)))
      })
      const page = await browser.newPage()
      await page.goto(url)
      const field = page.getByLabel('Message')
      await field.fill('To Lisbon.')
      await field.press('Enter')
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
      const said = await look('[data-role=user] .text')
      expect(said.backgroundColor).toBe('rgb(36, 50, 74)')
      // While the answer comes.
      await page.getByRole('button', { name: 'Stop' }).waitFor()
      await field.fill('And back.')
      await field.press('Enter')
      const queued = page.locator('article[data-queued]')
      await queued.waitFor()
      expect(await queued.innerText()).toMatch(/And back\.\s*queued/)
      expect(await look('[data-queued] .text')).not.toEqual(said)
      expect(await own.filter({ hasText: 'And back.' }).count()).toBe(1)
    } finally {
      await browser.close()
      server.kill()
      await rm(folder, { recursive: true, force: true })
    }
  },
)
