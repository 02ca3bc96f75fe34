import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SessionView } from '../../../src/studio/protocol.js'
import { paths } from '../../../src/studio/routes.js'
import { forgive, get, openPageForEach, page, shown, stage } from './visit.js'
import { soon } from '../soon.js'

export function describeOneFile(): void {
  describe('a session as one file', () => {
    openPageForEach()

    it('can be replayed as in the studio, makes no requests, and offers no actions', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'statewright-file-'))
      try {
        const file = join(folder, 'stuck.html')
        await writeFile(file, await stage.exported('stuck'))
        const { rows } = await get<SessionView>(paths.session('stuck'))
        const requests: string[] = []
        page.on('request', (request) => requests.push(request.url()))
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
        expect(requests.filter((url) => !url.startsWith('data:'))).toEqual([pathToFileURL(file).href])
        await soon(() => page.locator('.actions, .edit, .live').count()).toBe(0)
        forgive('asked elsewhere')
      } finally {
        await rm(folder, { recursive: true })
      }
    })
  })
}
