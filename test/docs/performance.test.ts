import { readFileSync } from 'node:fs'
import { root } from './snippets.js'

test('the counts in the document are those that check:counts enforces', () => {
  const document = readFileSync(`${root}docs/performance.md`, 'utf8')
  const counts = JSON.parse(readFileSync(`${root}bench/counts.json`, 'utf8')) as Record<string, number>
  const [, table = ''] = document.split(/<!-- \/?bench:counts -->/)
  const rows = [...table.matchAll(/^\| .* \| ([\d.]+) \|$/gm)].map(([, count]) => Number(count))
  expect(rows).toEqual(Object.values(counts))
})
