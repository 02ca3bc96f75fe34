// Renders every studio screen at four widths, light and dark, as one contact sheet each, and reports axe findings.
// `npm run pictures -- NAME …` selects screens; `--raw FOLDER` keeps full-size images.
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { captureWebp, settlePage } from './chromium.mjs'
import { importSource } from './stage.mjs'

const folder = new URL('../visualizations/studio/', import.meta.url)
const schemes = ['light', 'dark']
/** Narrow pages also show the part below the fold. */
const longest = 1700
const scale = 0.45

const { findFaults } = await importSource('test/browser/studio/find-faults.ts')

/** Renders the named screens, or all, and returns their faults. */
export async function shootScreens(browser, { only, raw }) {
  const { openScreens, screens, widths } = await importSource('test/browser/studio/screens.ts')
  const chosen = only.length === 0 ? screens : screens.filter(({ name }) => only.includes(name))
  if (chosen.length < only.length)
    throw new Error(`The screens are ${screens.map(({ name }) => name).join(', ')}.`)
  if (only.length === 0) await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  if (raw) await mkdir(raw, { recursive: true })
  const stage = await openScreens(chosen.some(({ name }) => name === 'run-long') ? { records: 5_000 } : {})
  const faults = []
  try {
    for (const screen of chosen) {
      const look = (width) => lookAt({ stage, screen, width, browser, raw })
      const seen = (await Promise.all(widths.map(look))).flat()
      faults.push(...seen.flatMap((shot) => shot.faults))
      await writeFile(new URL(`${screen.name}.webp`, folder), await composeSheet(browser, seen))
      console.log(`visualizations/studio/${screen.name}.webp`)
    }
  } finally {
    await stage.close()
  }
  return faults
}

/** Renders a screen at one width, light and dark, and returns its faults. */
async function lookAt({ stage, screen, width, browser, raw }) {
  const faults = []
  const viewport = { width, height: width > 1280 ? 900 : 800 }
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.on('pageerror', ({ message }) => faults.push(`${screen.name} ${width}: ${message}`))
  await stage.open(screen, page)
  if (width < 1280) {
    const whole = await page.evaluate(() => document.documentElement.scrollHeight)
    await page.setViewportSize({ width, height: Math.min(longest, whole) })
  }
  const shots = []
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme })
    await settlePage(page)
    const png = await page.screenshot()
    if (raw) await writeFile(`${raw}/${screen.name}-${width}-${colorScheme}.png`, png)
    const found = await findAllFaults(page, width, colorScheme)
    faults.push(...found.map((fault) => `${screen.name} ${width} ${colorScheme}: ${fault}`))
    shots.push({ width, colorScheme, png, height: page.viewportSize().height, faults: faults.splice(0) })
  }
  await context.close()
  return shots
}

/** Axe findings, and whether the page is wider than its window. */
async function findAllFaults(page, width, colorScheme) {
  const found = await findFaults(page, { coloursAlone: colorScheme === 'dark' })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth)
  return wide > width ? [...found, `the page is ${wide} pixels wide`] : found
}

/** Places the images side by side, and the two widest below each other. */
async function composeSheet(browser, shots) {
  const page = await browser.newPage({ viewport: { width: 3200, height: 2000 } })
  const image = ({ png, width, height }) =>
    `<img src="data:image/png;base64,${png.toString('base64')}" width="${width * scale}" height="${height * scale}">`
  const column = (some) => `<div>${some.map(image).join('')}</div>`
  const halves = schemes.map((scheme) => {
    const [phone, tablet, ...wide] = shots.filter(({ colorScheme }) => colorScheme === scheme)
    return column([phone]) + column([tablet]) + column(wide)
  })
  await page.setContent(
    `<style>
      body { margin: 0; background: #888 }
      main { display: inline-flex; gap: 10px; padding: 10px; align-items: start }
      div { display: grid; gap: 10px }
    </style><main>${halves.join('')}</main>`,
  )
  await page.evaluate(() => Promise.all([...document.images].map((one) => one.decode())))
  const clip = await page.locator('main').boundingBox()
  const sheet = await captureWebp(page, { quality: 30, clip })
  await page.close()
  return sheet
}
