// Generates files from the statechart: a jest file that takes every transition on the live agent, the list of transition
// pairs, the diagrams and the film. Generates the schema of log records from their types. With --check it writes nothing and
// fails on stale files.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { toChart, toMachineJson, toMermaid, toOverviewSvg } from '../dist/src/diagram/index.js'
import { agentMachine } from '../dist/src/index.js'
import { drawFilmAndPicture } from './film.mjs'
import { createRecordsSchema } from './records-schema.mjs'
import { importSource } from './stage.mjs'
import { formatCoverage, generateJestTests } from '../dist/src/testing/index.js'

const root = new URL('../', import.meta.url)
const notice = 'Generated from machines/agent.machine.ts by `npm run generate`. Do not edit.'

const { coverAgent } = await importSource('test/support/agent-coverage.ts')
const { transitions, pairs } = coverAgent()
const { paths, coverage } = transitions
const chart = toChart(agentMachine)
const compoundIn = ({ states }) =>
  states.filter((state) => state.states.length > 0).flatMap((state) => [state, ...compoundIn(state)])
const compound = compoundIn(chart.root)

const { film, picture } = await drawFilmAndPicture()
const files = {
  'test/paths/transitions.test.ts': generateJestTests(paths, {
    title: 'every transition, on the live agent',
    header: `@ts-nocheck ${notice}`,
    imports: [
      `import { replay } from '../../src/testing/index.js'`,
      `import { agentHarness } from '../support/agent-harness/agent-harness.js'`,
    ],
    harness: 'agentHarness(steps)',
  }),
  'test/paths/pairs.txt': `${notice}\n\n${formatCoverage(pairs.coverage)}`,
  'visualizations/agent.overview.svg': await toOverviewSvg(chart),
  'visualizations/agent.film.svg': film,
  'visualizations/agent.visited.svg': picture,
  ...Object.fromEntries(
    await Promise.all(
      compound.map(async (state) => [
        `visualizations/agent.${state.id}.svg`,
        await toOverviewSvg(chart, undefined, state.id),
      ]),
    ),
  ),
  'visualizations/agent.coverage.json': `${JSON.stringify(coverage, null, 2)}\n`,
  'records.schema.json': `${JSON.stringify(createRecordsSchema(), null, 2)}\n`,
  'visualizations/agent.mmd': toMermaid(chart),
  'visualizations/agent.machine.json': toMachineJson(agentMachine),
}

const check = process.argv.includes('--check')
const stale = []
for (const [name, text] of Object.entries(files)) {
  const path = new URL(name, root)
  const before = await readFile(path, 'utf8').catch(() => undefined)
  if (before === text) continue
  stale.push(name)
  if (check) continue
  await mkdir(new URL('.', path), { recursive: true })
  await writeFile(path, text)
}

const missed = coverage.transitions.filter(({ count }) => count === 0)
for (const { id, uncovered } of missed) console.error(`Not covered: ${id}\n  ${uncovered?.message}`)
if (missed.length > 0) process.exitCode = 1

if (stale.length === 0) console.log('The generated files are up to date.')
else if (!check) console.log(`Written: ${stale.join(', ')}`)
else {
  console.error(
    `Stale: ${stale.join(', ')}. Run npm run generate, and look at the difference and the pictures.`,
  )
  process.exitCode = 1
}
