// The cost of many sessions in Postgres: concurrent runs in one process, with steps of one tool call each, on a model that answers
// immediately.
// Usage: npm run bench -- postgres [--quick]
import pg from 'pg'
import { createAgent } from '../dist/src/index.js'
import { postgresStore } from '../dist/src/stores/postgres/index.js'
import { call, look, createAnswer } from './answers.mjs'

const quick = process.argv.includes('--quick')
const connectionString = process.env['STATEWRIGHT_TEST_POSTGRES']
const [runs, steps] = quick ? [50, 5] : [200, 20]
const pool = new pg.Pool({ connectionString, max: 10 })
pool.on('error', () => undefined)
let statements = 0
const counting = new Proxy(pool, {
  get: (target, key) =>
    key === 'query'
      ? (...args) => {
          statements += 1
          return target.query(...args)
        }
      : typeof target[key] === 'function'
        ? target[key].bind(target)
        : target[key],
})

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 0, reasoningTokens: 0 }
const model = {
  provider: 'bench',
  model: 'bench-1',
  request: async ({ messages }) => {
    const step = messages.filter(({ role }) => role === 'assistant').length
    const more = { usage, model: 'bench-1' }
    return step === steps - 1 ? createAnswer('Done.', [], more) : createAnswer('', [call('look', step)], more)
  },
}

try {
  const store = postgresStore({ pool: counting, schema: 'bench' })
  const agent = createAgent({ model, store, tools: [look], prices: null })
  await agent.run('Warm up.').result
  statements = 0
  const cpu = process.cpuUsage()
  const began = performance.now()
  const results = await Promise.all(
    Array.from({ length: runs }, (_, n) => agent.run('Go.', { session: `bench-${n}` }).result),
  )
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const steps = results.reduce((sum, result) => sum + result.steps, 0)
  const ended = results.filter(({ state }) => state === 'COMPLETED').length
  console.log(`${runs} sessions side by side, ${ended} completed, ${steps} steps in ${seconds.toFixed(2)} s`)
  console.log(`steps a second: ${(steps / seconds).toFixed(0)} (goal ≥ 500)`)
  console.log(`CPU of this process a step: ${((user + system) / 1000 / steps).toFixed(2)} ms`)
  console.log(`statements a step: ${(statements / steps).toFixed(2)} (goal ≤ 3)`)
  statements = 0
  const alone = await agent.run('Go.', { session: 'alone' }).result
  console.log(`statements a step, one session alone: ${(statements / alone.steps).toFixed(2)}`)
  await store.close()
} finally {
  await pool.end()
}
