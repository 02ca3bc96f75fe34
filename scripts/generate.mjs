// Generates from the statechart what is kept beside it: a jest file that takes every transition on the live agent, and
// the list of transition pairs. With --check, nothing is written and a file that is stale makes it fail.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { agentMachine } from '../dist/src/index.js'
import { agentSpace, coverageTable, coverPaths, emitJest } from '../dist/src/testing/index.js'

const folder = new URL('../test/paths/', import.meta.url)
const made = 'Generated from machines/agent.machine.ts by `npm run generate`. Do not edit.'

const transitions = coverPaths(agentMachine, agentSpace())
const pairs = coverPaths(agentMachine, { ...agentSpace(), coverage: 'transition-pairs' })

const files = {
  'transitions.test.ts': emitJest(transitions.paths, {
    title: 'every transition, on the live agent',
    header: `@ts-nocheck ${made}`,
    imports: [
      `import { replay } from '../../src/testing/index.js'`,
      `import { agentHarness } from '../support/agent-harness/agent-harness.js'`,
    ],
    harness: 'agentHarness(steps)',
  }),
  'pairs.txt': `${made}\n\n${coverageTable(pairs.coverage)}`,
}

const check = process.argv.includes('--check')
const stale = []
await mkdir(folder, { recursive: true })
for (const [name, text] of Object.entries(files)) {
  const path = new URL(name, folder)
  const before = await readFile(path, 'utf8').catch(() => undefined)
  if (before === text) continue
  stale.push(`test/paths/${name}`)
  if (!check) await writeFile(path, text)
}

const { coverage } = transitions
const missed = coverage.transitions.filter(({ taken }) => taken === 0)
for (const { id, uncovered } of missed) console.error(`Not covered: ${id}\n  ${uncovered?.message}`)
if (missed.length > 0) process.exitCode = 1

if (stale.length === 0) console.log('The generated files are up to date.')
else if (!check) console.log(`Written: ${stale.join(', ')}`)
else {
  console.error(
    `Stale: ${stale.join(', ')}. The statechart has changed: run npm run generate, and look at the difference.`,
  )
  process.exitCode = 1
}
