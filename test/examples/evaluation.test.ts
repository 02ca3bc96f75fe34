import { readFileSync } from 'node:fs'
import * as core from '../../src/index.js'
import * as rehearsing from '../../src/rehearsal/index.js'
import * as testing from '../../src/testing/index.js'
import type { EvaluationReport } from '../../src/testing/index.js'
import { splitShellWords } from '../../src/core/format/shell-words.js'
import { cli, removeFolders } from '../cli/support.js'
import { loadExample, provideEntries } from '../support/entries.js'

provideEntries({ statewright: core, 'statewright/rehearsal': rehearsing, 'statewright/testing': testing })

const page = readFileSync('docs/evaluations.md', 'utf8')
/** The command as the page has it. */
const [, line = ''] = /^npx statewright (eval examples\/.*)$/m.exec(page) ?? []
/** The table as the page shows it. */
const [, table = ''] = /```text\n( +mean.*?)```/s.exec(page) ?? []

afterAll(async () => {
  await removeFolders()
  const { rehearsal } = await loadExample<{ rehearsal: rehearsing.Rehearsal }>('evaluation/rehearsal.mjs')
  await rehearsal.close()
})

describe('examples/evaluation', () => {
  test('scores its cases with the command of the page, and prints the same table', async () => {
    const { code, out } = await cli(splitShellWords(line) ?? [])
    expect(code).toBe(0)
    expect(table.split('\n')).toHaveLength(6)
    expect(out).toContain(table)
  })

  test('needs only a file of cases and a scorer: fewer lines than the 57 that it replaces', async () => {
    const lines = readFileSync('examples/evaluation/score.mjs', 'utf8').split('\n').filter(Boolean)
    expect(lines.length).toBeLessThan(57 / 2)
    const { out } = await cli([...(splitShellWords(line) ?? []), '--json'])
    const { cases, summary } = JSON.parse(out) as EvaluationReport
    expect(cases).toHaveLength(30)
    expect(summary.verdicts).toEqual({ passed: 22, failed: 8, error: 0, diverged: 0 })
    expect(summary.cost.judges).toBeGreaterThan(summary.cost.agent ?? Infinity)
  })
})
