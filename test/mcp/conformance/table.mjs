// The table of docs/mcp.md with the conformance results and exclusions.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { table, written } from '../../../bench/block.mjs'
import { reasonsBySide } from './scope.mjs'

const page = fileURLToPath(new URL('../../../docs/mcp.md', import.meta.url))

/** Whether the page matches the results. With `writes`, updates the page. */
export function tellConformance({ version, played, writes }) {
  const table = formatConformance(version, played)
  if (writes) writeFileSync(page, written(readFileSync(page, 'utf8'), 'conformance', table))
  return readFileSync(page, 'utf8').includes(table)
}

function formatConformance(version, played) {
  const groups = [...new Set(played.map(({ side, about }) => `the ${side}, ${about}`))]
  const rows = groups.map((group) => {
    const cells = played.filter(({ side, about }) => `the ${side}, ${about}` === group)
    return {
      'Tested side': group,
      'Passed scenarios': cells.filter(({ applies, failed }) => applies && failed === 0).length,
      'Passed checks': cells.reduce((sum, { passed }) => sum + passed, 0),
      'Failed scenarios': cells.filter(({ failed }) => failed > 0).length,
      'Scenarios that do not apply': cells.filter(({ applies }) => !applies).length,
    }
  })
  const reasons = Object.entries(reasonsBySide).flatMap(([side, because]) =>
    Object.entries(because).map(([why, names]) => ({
      Side: side,
      Reason: why,
      'Scenarios, or individual checks (after a colon)': names.map((name) => `\`${name}\``).join(', '),
    })),
  )
  return [`Version ${version} of the suite:`, table(rows), table(reasons)].join('\n\n')
}
