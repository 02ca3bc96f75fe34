// What many sessions cost in Postgres: runs side by side in one process, each with steps of one tool call, on a model that
// answers at once. And a page of a list among a hundred thousand sessions, in Postgres and in a folder.
// Usage: npm run bench:postgres [-- --quick]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createAgent } from '../dist/src/index.js'
import { fileStore } from '../dist/src/stores/file/index.js'
import { postgresStore } from '../dist/src/stores/postgres/index.js'
import { call, look, said } from './answers.mjs'

const quick = process.argv.includes('--quick')
const connectionString = process.env['STATEWRIGHT_TEST_POSTGRES']
const [runs, steps, listed] = quick ? [50, 5, 10_000] : [200, 20, 100_000]
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
    return step === steps - 1 ? said('Done.', [], more) : said('', [call('look', step)], more)
  },
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

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
  const taken = results.reduce((sum, result) => sum + result.steps, 0)
  const ended = results.filter(({ state }) => state === 'COMPLETED').length
  console.log(`${runs} sessions side by side, ${ended} completed, ${taken} steps in ${seconds.toFixed(2)} s`)
  console.log(`steps a second: ${(taken / seconds).toFixed(0)} (goal ≥ 500)`)
  console.log(`CPU of this process a step: ${((user + system) / 1000 / taken).toFixed(2)} ms`)
  console.log(`statements a step: ${(statements / taken).toFixed(2)} (goal ≤ 3)`)
  statements = 0
  const alone = await agent.run('Go.', { session: 'alone' }).result
  console.log(`statements a step, one session alone: ${(statements / alone.steps).toFixed(2)}`)
  await store.close()

  const states = ['COMPLETED', 'WAITING_FOR_INPUT', 'PAUSED', 'ERROR', 'RUNNING']
  const summaryOf = (n) => ({
    title: `Session ${n}`,
    state: states[n % 5],
    reason: null,
    runs: 1,
    messages: 2,
    totalTokens: 15,
    cost: null,
    agent: `agent-${n % 7}`,
  })
  const record = { seq: 1, at: 1, type: 'opened', data: '{"version":2}', check: 'x' }
  const crowd = postgresStore({ connectionString, schema: 'crowd' })
  await crowd.list({ limit: 1 })
  await pool.query(
    `INSERT INTO crowd.sessions (id, head, created_at, updated_at, listed_at, summary, state, agent)
     SELECT 's' || n, 1, n, n, n, '{"title":"x","state":"' || s || '","reason":null,"runs":1,"messages":2,"totalTokens":15,"cost":null}',
       s, 'agent-' || n % 7
     FROM generate_series(1, $1) n, LATERAL (SELECT ($2::text[])[1 + n % 5] AS s) t`,
    [listed, states],
  )
  await pool.query('ANALYZE crowd.sessions')
  const dir = mkdtempSync(join(tmpdir(), 'statewright-bench-'))
  const files = fileStore({ dir })
  for (let n = 0; n < listed; n += 1) {
    const lease = files.acquire(`s${n}`, { holder: 'bench', ttlMs: 60_000 })
    files.append(lease, [record], summaryOf(n))
    files.release(lease)
  }
  for (const kept of [crowd, files]) {
    const name = kept === crowd ? 'Postgres' : 'a folder'
    for (const options of [
      { limit: 50 },
      { state: 'WAITING_FOR_INPUT', limit: 50 },
      { agent: 'agent-3', limit: 50 },
      { agent: 'agent-3', state: ['PAUSED', 'WAITING_FOR_INPUT'], limit: 50 },
    ]) {
      const first = await kept.list(options)
      const times = []
      for (let n = 0; n < 21; n += 1) {
        const start = performance.now()
        await kept.list({ ...options, cursor: n % 2 ? first.at(-1) : undefined })
        times.push(performance.now() - start)
      }
      console.log(
        `list ${JSON.stringify(options)} of ${listed} in ${name}: median ${median(times).toFixed(2)} ms, worst ${times.at(-1).toFixed(2)} ms (goal ≤ 50)`,
      )
    }
  }
  await crowd.close()
  files.close()
  rmSync(dir, { recursive: true })
} finally {
  await pool.end()
}
