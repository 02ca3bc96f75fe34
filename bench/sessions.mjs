// The cost of storing sessions. Runs the same agent on the same loopback server, with and without a store, alternating in one process.
// Reports medians. Usage: npm run bench -- sessions [--quick]
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runWorker } from './run-worker.mjs'

const quick = process.argv.includes('--quick')
const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'statewright-bench-'))
const server = fork(here('./server.mjs'))
const url = await new Promise((resolve) => server.once('message', resolve))

const worker = (options) => runWorker('./session-worker.mjs', { url, folder, ...options })

const rows = []
const row = (measure, value, goal, met) => {
  rows.push({ measure, value, goal, met: met === undefined ? '' : met ? 'yes' : 'NO' })
  console.log(`${measure}: ${value}${goal && ` (goal ${goal})`}`)
}
const us = (value) => `${value.toFixed(0)} µs`

try {
  const rounds = quick ? 20 : 60
  const short = worker({ what: 'persist', steps: 50, rounds, warmup: rounds })
  const long = worker({ what: 'persist', steps: 400, rounds: rounds / 10 + 1, warmup: 4 })
  for (const [name, { none, normal, full }] of [
    ['50 steps', short],
    ['400 steps', long],
  ]) {
    const isShort = name === '50 steps'
    const ratio = normal / none
    row(`wall a step, ${name}, no store`, us(none), '')
    row(
      `wall a step, ${name}, file store`,
      `${us(normal)} (${ratio.toFixed(2)} ×)`,
      isShort ? '≤ 1.15 ×' : '',
      isShort ? ratio <= 1.15 : undefined,
    )
    row(`wall a step, ${name}, file store, sync 'full'`, `${us(full)} (${(full / none).toFixed(2)} ×)`, '')
  }
  const growth = long.normal / long.none / (short.normal / short.none)
  row(
    'what persisting does to a step, 400 against 50 steps',
    `${growth.toFixed(2)} ×`,
    '≤ 1.3 ×',
    growth <= 1.3,
  )

  const { ms, records } = worker({ what: 'load', steps: 1000 })
  row(
    `loading a session of 1,000 steps (${records} records), cold`,
    `${ms.toFixed(0)} ms`,
    '≤ 300 ms',
    ms <= 300,
  )

  const { sessions, lost, perSecond } = worker({ what: 'concurrent', steps: 10, sessions: 200 })
  row(
    `${sessions} concurrent sessions on one store: records lost or out of order`,
    `${lost} (${perSecond.toFixed(0)} runs/s)`,
    '0',
    lost === 0,
  )
  console.table(rows)
} finally {
  server.kill()
  rmSync(folder, { recursive: true, force: true })
}
