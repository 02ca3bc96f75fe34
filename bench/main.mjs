// The cost of the loop, as a ratio to a bare loop on the openai client. Uses the same kind of process, the same loopback server, paired
// runs, medians. A loop is warm after 12,000 steps. Usage: npm run bench [-- --quick]
import { fork, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runWorker } from './run-worker.mjs'
import { median } from './statistics.mjs'

const quick = process.argv.includes('--quick')
const pairs = quick ? 3 : 7
const here = (name) => fileURLToPath(new URL(name, import.meta.url))

const server = fork(here('./server.mjs'))
const url = await new Promise((resolve) => server.once('message', resolve))

const worker = (options, flags) => runWorker('./worker.mjs', { url, ...options }, flags)

/** A B A B …: drift of the machine affects both equally. */
function paired(options) {
  const results = []
  for (let i = 0; i < pairs; i++) {
    const bare = worker({ ...options, impl: 'bare' })
    const ours = worker({ ...options, impl: 'statewright' })
    results.push({ bare, ours })
  }
  const of = (key) => ({
    bare: median(results.map(({ bare }) => bare[key])),
    ours: median(results.map(({ ours }) => ours[key])),
    ratio: median(results.map(({ bare, ours }) => ours[key] / bare[key])),
  })
  return { cpu: of('cpuUs'), wall: of('wallUs') }
}

const rows = []
const row = (name, bare, ours, value, goal, met) => {
  rows.push({ measure: name, bare, statewright: ours, value, goal, met: met ? 'yes' : 'NO' })
  console.log(`${name}: ${value} (goal ${goal})`)
}
const us = (value, per) => `${(value / per).toFixed(value / per < 20 ? 1 : 0)} µs`

for (const stream of [true, false]) {
  const name = stream ? 'streamed' : 'not streamed'
  const extra = {}
  for (const steps of [50, 400]) {
    const runs = steps === 50 ? 40 : 5
    const warmup = quick ? runs : 12_000 / steps
    const { cpu, wall } = paired({ what: 'steps', stream, steps, runs, warmup })
    const per = steps * runs
    extra[steps] = Math.max(0, (cpu.ours - cpu.bare) / per)
    const most = stream ? 0.65 : 0.7
    const goal = steps === 50 ? `≤ ${most} ×` : '(reported)'
    const met = steps !== 50 || cpu.ratio <= most
    row(
      `CPU a step, ${steps} steps, ${name}`,
      us(cpu.bare, per),
      us(cpu.ours, per),
      `${cpu.ratio.toFixed(2)} ×`,
      goal,
      met,
    )
    row(
      `wall a step, ${steps} steps, ${name}`,
      us(wall.bare, per),
      us(wall.ours, per),
      `${wall.ratio.toFixed(2)} ×`,
      '(reported)',
      true,
    )
  }
  const growth = extra[50] === 0 && extra[400] === 0 ? 0 : extra[400] / Math.max(extra[50], 1)
  row(
    `part over the bare loop, 400 against 50 steps, ${name}`,
    '',
    `${extra[50].toFixed(0)} → ${extra[400].toFixed(0)} µs`,
    `${growth.toFixed(2)} ×`,
    '≤ 1.3 ×',
    growth <= 1.3,
  )
}

for (const packets of [true, false]) {
  const [chunks, runs] = [10_000, 5]
  const { cpu } = paired({ what: 'chunks', stream: true, chunks, packets, runs, warmup: 2 * runs })
  const per = chunks * runs
  row(
    `CPU a chunk, ${packets ? 'ten a packet' : 'the whole body at once'}`,
    us(cpu.bare, per),
    us(cpu.ours, per),
    `${cpu.ratio.toFixed(2)} ×`,
    '≤ 0.3 ×',
    cpu.ratio <= 0.3,
  )
}

{
  const { wall } = paired({ what: 'concurrent', stream: true, steps: 10, runs: 200, warmup: 200 })
  const rate = 1 / wall.ratio
  const perSecond = (value) => `${((200 / value) * 1e6).toFixed(0)} runs/s`
  row(
    '200 concurrent runs of 10 steps',
    perSecond(wall.bare),
    perSecond(wall.ours),
    `${rate.toFixed(2)} ×`,
    '≥ 1.1 ×',
    rate >= 1.1,
  )
}

{
  const values = Array.from({ length: 3 }, () =>
    worker({ what: 'parked', stream: true, runs: 1000 }, ['--expose-gc']),
  )
  const kib = median(values.map(({ bytes, runs }) => bytes / runs)) / 1024
  row(
    'heap a run parked in a tool call',
    '',
    `${kib.toFixed(1)} KiB`,
    `${kib.toFixed(1)} KiB`,
    '≤ 12 KiB',
    kib <= 12,
  )
}

for (const { name, options, goal } of [
  {
    name: '5 calls a step with 2 KB each',
    options: { steps: 50, calls: 5, bytes: 2_000, runs: 60, warmup: 60 },
    goal: 20,
  },
  {
    name: 'one call with 1 MB',
    options: { steps: 2, calls: 1, bytes: 1_000_000, runs: 40, warmup: 20 },
    goal: 20_000,
  },
]) {
  const { on, without } = worker({ what: 'guards', ...options })
  const cost = on - without
  row(
    `guards on against off, ${name}`,
    us(without, 1),
    us(on, 1),
    us(cost, 1),
    `≤ ${us(goal, 1)} a step`,
    cost <= goal,
  )
}

{
  const time = (specifier) => {
    const code = `const t = performance.now(); await import(${JSON.stringify(specifier)}); console.log(performance.now() - t)`
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      encoding: 'utf8',
      cwd: here('..'),
    })
    return Number(stdout)
  }
  const results = Array.from({ length: pairs * 2 + 1 }, () => ({
    bare: time('openai'),
    ours: time(here('../dist/src/index.js')),
  }))
  const ratio = median(results.map(({ bare, ours }) => ours / bare))
  const ms = (key) => `${median(results.map((result) => result[key])).toFixed(0)} ms`
  row(
    'import time, against openai alone',
    ms('bare'),
    ms('ours'),
    `${ratio.toFixed(2)} ×`,
    '≤ 1.3 ×',
    ratio <= 1.3,
  )
}

console.table(rows)
server.kill()
