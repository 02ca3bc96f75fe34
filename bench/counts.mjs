// The budget of a step in machine-independent counts, so that its work and its garbage cannot grow unnoticed. Compares with
// bench/counts.json. `--write` updates that file and the table in docs/performance.md.
// Usage: npm run check:counts [-- --write]
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { table, written } from './block.mjs'
import { runWorker } from './run-worker.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const file = here('./counts.json')
const names = {
  microsteps: 'chart transitions',
  actors: 'actors (request, batch)',
  messages: 'messages between actors',
  snapshots: 'snapshots, including those of the actors',
  events: 'events, if there is a listener',
  promises: 'promises',
  timers: 'timers (silent model, slow tool)',
  abortControllers: 'AbortControllers, if no tool uses its signal',
  listeners: 'signal listeners',
  garbageKiB: 'garbage in KiB',
  parkedKiB: 'heap of a run that is waiting for a tool, in KiB',
}
/** Byte counts vary slightly between Node versions and between runs. */
const tolerance = 1.05

const worker = (options, flags) => runWorker('./machine-worker.mjs', options, flags)

const garbage = { what: 'garbage', impl: 'statewright', steps: 50, runs: 8, warmup: 160 }
const young = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256']
const counted = {
  ...worker({ what: 'counts' }),
  garbageKiB: Math.round(worker(garbage, young).bytes / 1024),
  parkedKiB: Number((worker({ what: 'parked', runs: 1000 }, ['--expose-gc']).bytes / 1024).toFixed(1)),
}

if (process.argv.includes('--write')) {
  writeFileSync(file, `${JSON.stringify(counted, null, 2)}\n`)
  const docs = here('../docs/performance.md')
  const rows = Object.entries(counted).map(([what, count]) => ({ 'per step': names[what], count }))
  writeFileSync(docs, written(readFileSync(docs, 'utf8'), 'counts', table(rows)))
  console.log(`Written: ${JSON.stringify(counted)}`)
} else {
  const recorded = JSON.parse(readFileSync(file, 'utf8'))
  const limit = (key) => (key.endsWith('KiB') ? recorded[key] * tolerance : recorded[key])
  const grown = Object.keys(counted).filter((key) => !(counted[key] <= limit(key)))
  const rows = Object.keys(counted).map((key) => ({ 'a step': key, kept: recorded[key], now: counted[key] }))
  console.table(rows)
  if (grown.length > 0) {
    console.error(`A step costs more than bench/counts.json allows: ${grown.join(', ')}.`)
    console.error('Make it cheaper, or say in the commit why it is worth it: npm run check:counts -- --write')
    process.exit(1)
  }
}
