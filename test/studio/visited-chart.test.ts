import { drawChart } from '../../src/studio/chart-view.js'
import { drawVisitedChart } from '../../src/studio/visited-chart.js'

test('each row of the whole chart states whole conditions and its target, and fits into its box', async () => {
  const svg = drawVisitedChart(await drawChart(), null)
  const rows = Array.from(svg.matchAll(/<title>([^]*?)\n→ (\w+)<\/title><text [^>]*>([^<]*)</g))
  expect(rows.length).toBeGreaterThan(20)
  for (const [, title = '', target = '', shown = ''] of rows) {
    const [, conditions = '', more = '0', to] = /^(.*?)(?: \+(\d+))? → (\w+)$/.exec(shown) ?? []
    const words = title.split('\n')
    const count = words.length - Number(more)
    expect([conditions, to]).toEqual([words.slice(0, count).join(', '), target])
    expect([1, 2]).toContain(count)
    expect(shown.length).toBeLessThanOrEqual(62)
  }
})
