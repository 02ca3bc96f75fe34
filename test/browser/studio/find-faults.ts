import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/**
 * The axe findings on a page, by all rules or only the colour rules. Dark mode changes only the colours of a
 * checked page.
 */
export async function findFaults(page: Page, { coloursAlone = false } = {}): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(await readFile(axe, 'utf8'))
  const rules = coloursAlone ? ", runOnly: ['color-contrast']" : ''
  const { violations } = (await page.evaluate(`axe.run({ resultTypes: ['violations']${rules} })`)) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
  }
  return violations.map(({ id, nodes: [first] }) => `${id}: ${first?.html}\n${first?.failureSummary}`)
}
