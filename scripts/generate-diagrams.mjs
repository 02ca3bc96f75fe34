// Draws the statechart into visualizations/. With --check, nothing is written and a file that is stale makes it fail.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import {
  chartOf,
  countsOf,
  toMachineJson,
  toMermaid,
  toOverviewSvg,
  toSvg,
} from '../dist/src/diagram/index.js'
import { agentMachine } from '../dist/src/index.js'
import { agentSpace, coverPaths } from '../dist/src/testing/index.js'

const folder = new URL('../visualizations/', import.meta.url)

const chart = chartOf(agentMachine)
const { coverage } = coverPaths(agentMachine, agentSpace())
const counts = countsOf(coverage, chart)
const compound = chart.root.states.filter(({ states }) => states.length > 0).map(({ id }) => id)

const files = {
  'agent.svg': await toSvg(chart),
  'agent.overview.svg': await toOverviewSvg(chart),
  ...Object.fromEntries(
    await Promise.all(compound.map(async (state) => [`agent.${state}.svg`, await toSvg(chart, { state })])),
  ),
  'agent.coverage.svg': await toSvg(chart, { counts }),
  'agent.coverage.json': `${JSON.stringify(coverage, null, 2)}\n`,
  'agent.mmd': toMermaid(chart),
  'agent.machine.json': toMachineJson(agentMachine),
}

const check = process.argv.includes('--check')
const stale = []
await mkdir(folder, { recursive: true })
for (const [name, text] of Object.entries(files)) {
  const path = new URL(name, folder)
  const before = await readFile(path, 'utf8').catch(() => undefined)
  if (before === text) continue
  stale.push(`visualizations/${name}`)
  if (!check) await writeFile(path, text)
}

if (stale.length === 0) console.log('The diagrams are up to date.')
else if (!check) console.log(`Written: ${stale.join(', ')}`)
else {
  console.error(
    `Stale: ${stale.join(', ')}. The statechart has changed: run npm run generate, and look at the pictures.`,
  )
  process.exitCode = 1
}
