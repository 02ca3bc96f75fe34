import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BrowserContext } from 'playwright-core'
import { exportSession } from '../../../src/studio/export-session.js'
import { paths } from '../../../src/studio/routes.js'
import { browser, origin, stage } from './visit.js'
import { soon } from '../soon.js'

export function describeStrangers(): void {
  describe('another page or browser', () => {
    let strangers: Server
    let context: BrowserContext
    /** The cookies that the other page received. */
    const sent: (string | undefined)[] = []

    beforeAll(async () => {
      strangers = createServer((request, response) => {
        if (request.url === '/') sent.push(request.headers.cookie)
        response.setHeader('content-type', 'text/html').end('<!doctype html><title>Another page</title>')
      })
      await new Promise<void>((resolve) => strangers.listen(0, '127.0.0.1', resolve))
    })

    afterAll(() => new Promise((resolve) => strangers.close(resolve)))

    beforeEach(async () => {
      context = await browser.newContext()
    })

    afterEach(() => context.close())

    /** A browser with the studio and another page open. The other page knows the studio's address. */
    async function elsewhere(host: string) {
      const page = await context.newPage()
      await page.goto(stage.url)
      await page.waitForSelector('.sessions')
      const base = page.url().replace(/\/(#.*)?$/, '')
      const { port } = strangers.address() as AddressInfo
      await page.goto(`http://${host}:${port}/`)
      return { page, base }
    }

    it.each([
      ['another site', 'evil.example'],
      ['another port of this machine', '127.0.0.1'],
    ])('%s reads nothing and answers nothing', async (_, host) => {
      const { page, base } = await elsewhere(host)
      const tried = await page.evaluate(
        async ({ origin, answers, sessions, live }) => {
          const outcomeOf = (pending: Promise<Response>) =>
            pending.then(
              async (response) => `${response.type} ${response.status} ${(await response.text()).length}`,
              () => 'refused',
            )
          const post = (type: string, mode: RequestMode) =>
            fetch(origin + answers, {
              method: 'POST',
              mode,
              credentials: 'include',
              headers: { 'content-type': type },
              body: '{"type":"cancel"}',
            })
          return [
            await outcomeOf(fetch(origin + sessions, { credentials: 'include' })),
            await outcomeOf(fetch(origin + sessions, { credentials: 'include', mode: 'no-cors' })),
            await outcomeOf(post('application/json', 'cors')),
            await outcomeOf(post('text/plain', 'no-cors')),
            await new Promise((resolve) => {
              const source = new EventSource(origin + live, { withCredentials: true })
              source.addEventListener('open', () => resolve('open'))
              source.addEventListener('error', () => resolve('refused'))
            }),
            await new Promise((resolve) => {
              const script = document.createElement('script')
              script.src = `${origin}/client.js`
              script.addEventListener('load', () => resolve('loaded'))
              script.addEventListener('error', () => resolve('refused'))
              document.head.append(script)
            }),
          ]
        },
        { origin: base, answers: paths.answers('expenses'), sessions: paths.sessions, live: paths.live() },
      )
      // An opaque response has length zero and cannot be read.
      const unread = tried.map((one) =>
        typeof one === 'string' && /^opaque 0 0$/.test(one) ? 'refused' : one,
      )
      expect(unread).toEqual(unread.map(() => 'refused'))
      expect((await stage.store.get('expenses'))?.summary?.state).toBe('WAITING_FOR_INPUT')
      await page.evaluate(async (url) => {
        const frame = document.createElement('iframe')
        frame.src = url
        document.body.append(frame)
        await new Promise((resolve) => {
          frame.addEventListener('load', resolve)
        })
      }, `${base}/`)
      expect(await page.frames()[1]?.locator('#app').count()).toBe(0)
    })

    it('another name of this machine is not the studio', async () => {
      const page = await context.newPage()
      const { port, search } = new URL(stage.url)
      const response = await page.goto(`http://rebound.example:${port}/${search}`)
      expect(response?.status()).toBe(403)
      await soon(() => context.cookies()).toEqual([])
    })

    it('no script reads the cookie, and no server on another port receives it', async () => {
      const page = await context.newPage()
      await page.goto(stage.url)
      await page.waitForSelector('.sessions')
      expect(page.url()).toMatch(new RegExp(`^${origin()}/[\\w-]{32}/`))
      await soon(() => page.evaluate(() => document.cookie)).toBe('')
      const { pathname } = new URL(page.url())
      await soon(() => context.cookies(page.url())).toMatchObject([
        { httpOnly: true, sameSite: 'Strict', domain: '127.0.0.1', path: pathname },
      ])
      const { port } = strangers.address() as AddressInfo
      await page.goto(`http://127.0.0.1:${port}/`)
      expect(sent.at(-1)).toBeUndefined()
    })

    it('an opened address opens no other browser', async () => {
      const address = stage.url
      const page = await context.newPage()
      await page.goto(address)
      await page.waitForSelector('.sessions')
      // The same browser uses it to return.
      await page.goto(address)
      await page.waitForSelector('.sessions')
      const other = await browser.newContext()
      const response = await (await other.newPage()).goto(address)
      expect(response?.status()).toBe(403)
      expect(await response?.text()).toContain('another browser has already opened it')
      await other.close()
    })

    it('an exported session is one file that shows it, runs none of its content, and makes no requests', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'statewright-export-'))
      const file = join(folder, 'session.html')
      await writeFile(file, await exportSession(stage.store, 'html'))
      const page = await context.newPage()
      const requests: string[] = []
      const faults: string[] = []
      page.on('request', (request) => requests.push(request.url()))
      page.on('pageerror', ({ message }) => faults.push(message))
      page.on('console', (message) => {
        if (message.type() === 'error') faults.push(message.text())
      })
      await page.goto(pathToFileURL(file).href)
      await page.waitForSelector('svg')
      await page.getByText('It says <img src=x').first().waitFor()
      await soon(() => page.evaluate(() => (globalThis as { hit?: unknown }).hit)).toBeUndefined()
      expect(requests.filter((url) => !url.startsWith('data:'))).toEqual([pathToFileURL(file).href])
      expect(faults).toEqual([])
      await rm(folder, { recursive: true })
    })
  })
}
