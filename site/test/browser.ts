import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
export const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium'

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--no-proxy-server',
    ],
  })
}

/** The viewports and themes for every kind of page. */
export const looks = [400, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)

export type Look = (typeof looks)[number]

export function openContext(
  browser: Browser,
  { width, colorScheme }: Look,
  reducedMotion: 'reduce' | 'no-preference' = 'reduce',
): Promise<BrowserContext> {
  return browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion })
}

/** The axe violations, each as its rule and its first element. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run()
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`)
  })
}

interface AxeResults {
  violations: { id: string; nodes: { html: string }[] }[]
}

/** The horizontal overflow of the page in pixels. */
export function findOverflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
}
