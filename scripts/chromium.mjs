import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

function findChromium() {
  return [process.env.CHROMIUM, '/usr/bin/chromium'].find((path) => path && existsSync(path))
}

function installChromium() {
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) return undefined
  console.log('Installing chromium with apt-get.')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { env, stdio: ['ignore', 'ignore', 'inherit'] }
  spawnSync('apt-get', ['update', '-qq'], options)
  spawnSync('apt-get', ['install', '-qq', '-y', '--no-install-recommends', 'chromium'], options)
  return findChromium()
}

/** The path of Debian's Chromium. Without one, exits with 0, or in CI with 1. */
export function needChromium(tests) {
  const chromium = findChromium() ?? installChromium()
  if (chromium !== undefined) return chromium
  const what = process.env.CI === 'true' ? 'failed' : 'skipped'
  console.log(
    `${tests} ${what}: there is no chromium here (CHROMIUM, /usr/bin/chromium), and it cannot be installed without root and apt-get.`,
  )
  return process.exit(what === 'failed' ? 1 : 0)
}

/** Waits until scrolling and late content have settled. */
export function settlePage(page) {
  return page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  )
}

/** A WebP screenshot of a page. `clip` is a region, which may be outside the window. */
export async function captureWebp(page, { quality, clip }) {
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', {
    format: 'webp',
    quality,
    ...(clip && { captureBeyondViewport: true, clip: { ...clip, scale: 1 } }),
  })
  return Buffer.from(data, 'base64')
}

/** Launches Debian's Chromium. */
export function launchChromium() {
  return chromium.launch({
    executablePath: findChromium() ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
  })
}
