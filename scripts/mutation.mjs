// Tests the generated suite by mutation. Breaks the agent machine in several hundred ways, and shows the generated path or invariant
// that notices each mutant. Fails when a mutant survives that is not listed as equivalent. Takes a few minutes. With a pattern, only
// mutants whose names match it are tried: node scripts/mutation.mjs 'fittingContext|RESUMED'
// --write updates test/mutation/killers.json, which records the catcher of each mutant, so that the next run tries it first. Without
// it, a mutant takes up to twenty seconds. --whole searches all runs for a catcher of each equivalent mutant, and all paths for each
// mutant whose log the rules in spec/ reject. It takes half an hour.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { engineFlags } from './suite.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
// Inside node_modules, so that the bundle finds packages.
const folder = fileURLToPath(new URL('../node_modules/.cache/statewright', import.meta.url))
const bundle = `${folder}/mutation.mjs`
mkdirSync(folder, { recursive: true })
await build({
  absWorkingDir: root,
  entryPoints: ['test/mutation/main.ts'],
  outfile: bundle,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  logLevel: 'warning',
})

const killers = `${root}test/mutation/killers.json`
const { values, positionals } = parseArgs({
  options: { write: { type: 'boolean' }, whole: { type: 'boolean' } },
  allowPositionals: true,
})
const [pattern = ''] = positionals
const shards = Math.min(4, availableParallelism())
const lines = []
const codes = await Promise.all(Array.from({ length: shards }, (_, shard) => run(shard)))
if (codes.some((code) => code !== 0)) {
  console.error('A part of the mutation test has crashed.')
  process.exit(1)
}

const caught = lines.filter(({ caughtBy, excuse }) => caughtBy !== null && excuse === null)
const excused = lines.filter(({ caughtBy, excuse }) => caughtBy === null && excuse !== null)
const survivors = lines.filter(({ caughtBy, excuse }) => caughtBy === null && excuse === null)
const stale = lines.filter(({ caughtBy, excuse }) => caughtBy !== null && excuse !== null)

for (const { name, caughtBy } of caught) console.log(`${name}\n    ${caughtBy}`)
section('Changes nothing', excused, ({ name, excuse }) => `${name}\n    ${excuse}`)
section('SURVIVED', survivors, ({ name }) => name)
section('STALE: listed as changing nothing', stale, ({ name, caughtBy }) => `${name}\n    ${caughtBy}`)
const byPaths = caught.filter(({ caughtBy }) => caughtBy.startsWith('path')).length
console.log(
  `\n${lines.length} mutants: ${caught.length} caught (${byPaths} by paths, ${caught.length - byPaths} by invariants), ` +
    `${excused.length} change nothing, ${survivors.length} survived.`,
)
// Judged by the independent rules of the loop, without paths or invariants derived from the machine.
const isUnlawful = ({ unlawful }) => typeof unlawful === 'string'
console.log(
  `By the rules of spec/ alone: ${caught.filter(isUnlawful).length} of ${caught.length + survivors.length}.`,
)
section(
  'STALE: changes nothing, and the rules of spec/ refuse it',
  excused.filter(isUnlawful),
  ({ name }) => name,
)
if (survivors.length + stale.length + excused.filter(isUnlawful).length > 0) process.exitCode = 1
if (values.write && pattern === '') writeFileSync(killers, `${JSON.stringify(listKillers(), null, 2)}\n`)

function listKillers() {
  const found = caught.map(({ name, killer, unlawful }) => [name, { ...killer, unlawful }])
  return Object.fromEntries(found.sort(([one], [other]) => (one < other ? -1 : 1)))
}

async function run(shard) {
  const child = spawn(
    process.execPath,
    [...engineFlags, bundle, `${shard}`, `${shards}`, killers, values.whole ? 'whole' : 'short', pattern],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => lines.push(JSON.parse(line)))
  const [[code]] = await Promise.all([once(child, 'close'), once(output, 'close')])
  return code
}

function section(title, list, show) {
  if (list.length > 0) console.log(`\n${title} (${list.length}):`)
  for (const item of list) console.log(show(item))
}
