// Renders the pictures of docs/studio.md, and a sheet of every screen (not in git), from rehearsed sessions in Chromium.
// Arguments select screens by name; `docs` selects the pictures. Pixels differ between machines, so `--check` compares
// a hash of the page's code instead.
import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { captureWebp, launchChromium, settlePage } from './chromium.mjs'
import { shootScreens } from './screens.mjs'
import { openStage } from './stage.mjs'

const root = new URL('../', import.meta.url)
const folder = new URL('docs/pictures/', root)
const sources = [
  'dist/src/studio/client.js',
  'dist/src/studio/client.css',
  'visualizations/agent.overview.svg',
]

async function sourceHash() {
  const hash = createHash('sha256')
  for (const source of sources) hash.update(await readFile(new URL(source, root)))
  return `${hash.digest('hex')}\n`
}

async function check() {
  const madeWith = await readFile(new URL('made-with.txt', folder), 'utf8').catch(() => '')
  if (madeWith === (await sourceHash())) return console.log('The pictures of the studio are up to date.')
  console.error('The studio looks different from its pictures: run npm run pictures, and look at them.')
  process.exitCode = 1
}

async function shootDocs(browser) {
  const stage = await openStage()
  await mkdir(folder, { recursive: true })
  async function shoot(
    name,
    { hash, scheme = 'light', height = 800, until, act = async () => undefined, url },
  ) {
    const context = await browser.newContext({
      viewport: { width: 1280, height },
      colorScheme: scheme,
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    await page.goto(url ?? stage.url)
    if (hash) await page.goto(page.url().replace(/#.*/, '') + hash)
    await page.waitForSelector(until)
    await act(page)
    await settlePage(page)
    await writeFile(new URL(`${name}.webp`, folder), await captureWebp(page, { quality: 90 }))
    await context.close()
    console.log(`docs/pictures/${name}.webp`)
  }

  await shoot('sessions', {
    hash: '#/',
    until: 'button:has-text("Damaged")',
    // The steps of a session arrive later. The damaged one has none.
    act: (page) => page.waitForFunction(() => document.body.textContent.split('– steps').length === 2),
  })
  await shoot('run', { hash: '#/session/expenses', until: '.pending', height: 900 })
  await shoot('share', {
    hash: '#/session/paid',
    until: '.verdict-buttons',
    act: async (page) => {
      await page.getByRole('button', { name: 'Share', exact: true }).click()
      await page.waitForSelector('dialog.share')
    },
  })
  await shoot('compare', { hash: '#/compare/expenses/paid', until: '.compare-chart svg' })
  await shoot('chart', { hash: '#/chart/RUNNING.asking.requesting', until: '.about h1', scheme: 'dark' })
  const file = new URL('node_modules/.exported.html', root)
  await writeFile(file, await stage.exported('stuck'))
  await shoot('file', {
    url: file.href,
    until: '.panel .message',
    scheme: 'dark',
    height: 900,
    act: async (page) => {
      await page.keyboard.press('4')
      for (let step = 0; step < 3; step++) await page.keyboard.press('ArrowLeft')
      await page.waitForSelector('.guards')
    },
  })
  await rm(file)
  await stage.close()
}

async function make({ positionals: only, values: { raw } }) {
  const browser = await launchChromium()
  const isAll = only.length === 0
  if (isAll || only.includes('docs')) {
    await shootDocs(browser)
    await writeFile(new URL('made-with.txt', folder), await sourceHash())
  }
  const names = only.filter((name) => name !== 'docs')
  const faults = isAll || names.length > 0 ? await shootScreens(browser, { only: names, raw }) : []
  await browser.close()
  if (faults.length === 0) return
  console.error(`${faults.join('\n')}\nThe screens have ${faults.length} faults.`)
  process.exitCode = 1
}

const args = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean' }, raw: { type: 'string' } },
})
await (args.values.check ? check() : make(args))
