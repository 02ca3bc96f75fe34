// The cost of the machine without a wire: Statewright next to a minimal agent loop on XState. Each runs in separate processes,
// alternating. Reports medians with their spread. Usage: npm run bench -- machine [--quick] [--write]. `--write` updates
// docs/performance.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { table, written } from './block.mjs'
import { runWorker } from './run-worker.mjs'
import { median, spread } from './statistics.mjs'

const quick = process.argv.includes('--quick')
const rounds = quick ? 3 : 9
const contenders = ['statewright', 'minimal']

const worker = (options, flags) => runWorker('./machine-worker.mjs', { warmup: 0, ...options }, flags)

const rows = []
function row(measure, value, { xstate = '', ratio = '', goal = '', met } = {}) {
  rows.push({
    measure,
    statewright: value,
    'minimal loop on XState': xstate,
    ratio,
    goal,
    met: met === undefined ? '' : met ? 'yes' : 'no',
  })
  console.log(`${measure}: ${value}`)
}

/** Alternates both, and reverses the order each time, so that drift affects both equally. */
function paired(options, key, flags) {
  const results = { statewright: [], minimal: [] }
  for (let i = 0; i < rounds; i++) {
    for (const impl of i % 2 === 0 ? contenders : [...contenders].reverse())
      results[impl].push(worker({ ...options, impl }, flags))
  }
  const of = (impl, key) => results[impl].map((result) => result[key])
  const ratios = of('statewright', key).map((value, i) => value / of('minimal', key)[i])
  const ratio = `${median(ratios).toFixed(2)} × (${spread(ratios)})`
  return { ours: of('statewright', key), xstate: of('minimal', key), gc: of('statewright', 'gc'), ratio }
}

const us = (values) => `${median(values).toFixed(0)} µs (${spread(values, 0)})`
const kib = (values) => `${(median(values) / 1024).toFixed(1)} KiB`

const long = {}
for (const steps of [50, 400]) {
  const runs = 4000 / steps
  const { ours, xstate, gc, ratio } = paired({ what: 'cpu', steps, runs, warmup: 2 * runs }, 'cpu')
  long[steps] = median(ours)
  const goal = steps === 50 ? { goal: '≤ 60 µs', met: median(ours) <= 60 } : {}
  row(`CPU per step, ${steps} steps`, us(ours), { xstate: us(xstate), ratio, ...goal })
  row(`garbage collector per step, ${steps} steps`, us(gc))
}
const growth = long[400] / long[50]
row('CPU per step, 400 compared with 50 steps', `${growth.toFixed(2)} ×`, {
  goal: '≤ 1.1 ×',
  met: growth <= 1.1,
})

{
  const { ours, xstate, ratio } = paired({ what: 'cpu', steps: 10, runs: 20 }, 'cpu')
  row('CPU per step, first 200 steps of a process', us(ours), { xstate: us(xstate), ratio })
}

const young = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256']
for (const steps of [50, 400]) {
  const options = { what: 'garbage', steps, runs: 400 / steps, warmup: 8000 / steps }
  const { ours, xstate, ratio } = paired(options, 'bytes', young)
  const goal = steps === 50 ? { goal: '≤ 25 KiB', met: median(ours) <= 25 * 1024 } : {}
  row(`garbage per step, ${steps} steps`, kib(ours), { xstate: kib(xstate), ratio, ...goal })
}

{
  const bytes = Array.from({ length: 3 }, () => worker({ what: 'parked', runs: 1000 }, ['--expose-gc']).bytes)
  row('heap of a run that is waiting for a tool', kib(bytes), {
    goal: '≤ 8 KiB',
    met: median(bytes) <= 8 * 1024,
  })
}

const about = `Node ${process.version}, medians of ${rounds} rounds, ${new Date().toISOString().slice(0, 10)}`
console.log(about)
console.table(rows)
if (process.argv.includes('--write')) {
  const docs = fileURLToPath(new URL('../docs/performance.md', import.meta.url))
  const text = readFileSync(docs, 'utf8')
  writeFileSync(docs, written(text, 'machine', `${table(rows)}\n\n${about}.`))
}
