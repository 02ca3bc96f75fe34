import { readFile } from 'node:fs/promises'
import { open, openPageForEach, page } from './visit.js'
import { soon } from '../soon.js'

export function describeShare(): void {
  describe('the share menu', () => {
    openPageForEach()

    it('saves a file and pictures, without texts if selected, and copies the link', async () => {
      await open('paid', 3)
      await page.getByRole('button', { name: 'Share' }).click()
      const save = async (name: string): Promise<Buffer> => {
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('button', { name }).click(),
        ])
        return readFile(await download.path())
      }
      expect((await save('Picture (SVG)')).toString()).toContain('What was the largest expense')
      const film = (await save('Film (SVG)')).toString()
      expect(film).toContain('What was the largest expense')
      expect(film).toContain('@keyframes')
      const png = await save('Picture (PNG)')
      expect(png.subarray(1, 4).toString()).toBe('PNG')
      expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([2400, 1260])
      await page.getByLabel(/^Without text/).check()
      const bare = (await save('HTML file')).toString()
      expect(bare).toContain('"read_file"')
      expect(bare).not.toContain('Lisbon')
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      const copy = async (name: RegExp): Promise<string> => {
        await page.getByRole('button', { name }).click()
        await page.getByText(/^Copied: /).waitFor()
        return page.evaluate(() => navigator.clipboard.readText())
      }
      const link = await copy(/^Copy the link/)
      expect(link).toMatch(/#\/session\/paid\/3$/)
      await soon(() => copy(/^Copy the command/)).toContain('sessions export paid --as test')
      await page.keyboard.press('Escape')
      await page.waitForSelector('dialog.share', { state: 'detached' })
      // A link also leads to its record if the session is already open.
      await page.goto(link.replace(/3$/, '5'))
      await page.waitForSelector('.slider input[aria-valuetext^="Record 5 "]')
    })
  })
}
