// The cost of telemetry per step, enabled and disabled, with a no-op exporter. Runs in separate processes, alternating. Reports
// medians with their spread. Usage: npm run bench -- otel [--quick]
import { runWorker } from './run-worker.mjs'
import { median, spread } from './statistics.mjs'

const rounds = process.argv.includes('--quick') ? 3 : 9
const contenders = ['absent', 'absent beside an SDK', 'spans', 'spans and metrics']
const options = { steps: 50, runs: 60, warmup: 100 }
const goal = 30

const measured = Object.fromEntries(contenders.map((impl) => [impl, []]))
for (let i = 0; i < rounds; i++) {
  for (const impl of i % 2 === 0 ? contenders : [...contenders].reverse())
    measured[impl].push(runWorker('./otel-worker.mjs', { ...options, impl }).cpu)
}
const us = (values) => `${median(values).toFixed(0)} µs (${spread(values, 0)})`
const rows = contenders.map((impl) => {
  const more = measured[impl].map((value, i) => value - measured['absent beside an SDK'][i])
  const isLimited = impl === 'spans'
  return {
    telemetry: impl,
    'CPU a step': us(measured[impl]),
    more: impl.startsWith('spans') ? us(more) : '',
    goal: isLimited ? `≤ ${goal} µs` : '',
    met: isLimited ? (median(more) <= goal ? 'yes' : 'NO') : '',
  }
})
const about = `Node ${process.version}, medians of ${rounds} rounds, ${new Date().toISOString().slice(0, 10)}`
console.log(about)
console.table(rows)
