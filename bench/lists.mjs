// The cost of a list page among 100,000 sessions, in Postgres and in a folder: by state and agent, by owner or tenant, and by both.
// One in ten sessions is a sub-agent's.
// Usage: npm run bench -- lists [--quick]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { fileStore } from '../dist/src/stores/file/index.js'
import { postgresStore } from '../dist/src/stores/postgres/index.js'

const count = process.argv.includes('--quick') ? 10_000 : 100_000
const connectionString = process.env['STATEWRIGHT_TEST_POSTGRES']
const goalMs = 50
const states = ['COMPLETED', 'WAITING_FOR_INPUT', 'PAUSED', 'ERROR', 'RUNNING']
const record = { seq: 1, at: 1, type: 'opened', data: '{"version":2}', check: 'x' }

/** Half of the sessions belong to one tenant, and one in a thousand belongs to one person. */
function createSession(n) {
  const user = `user-${n % 1_000}`
  const id = `${user}:${n}`
  const isChild = n % 10 === 9
  const summary = {
    title: `Session ${n}`,
    state: states[n % 5],
    reason: null,
    runs: 1,
    messages: 2,
    totalTokens: 15,
    cost: null,
    agent: `agent-${n % 7}`,
    ...(isChild
      ? { parent: `user-${(n - 1) % 1_000}:${n - 1}` }
      : { tags: { tenant: `tenant-${n % 2}`, user } }),
  }
  return { id, summary }
}

async function fill(store, sideBySide) {
  const began = performance.now()
  for (let from = 0; from < count; from += sideBySide) {
    const some = Array.from({ length: Math.min(sideBySide, count - from) }, (_, i) => createSession(from + i))
    await Promise.all(
      some.map(async ({ id, summary }) => {
        const lease = await store.acquire(id, { holder: 'bench', ttlMs: 60_000 })
        const receipt = await store.append(lease, [record], summary, { release: true })
        if (!receipt?.released) await store.release(lease)
      }),
    )
  }
  return (performance.now() - began) / count
}

const dir = mkdtempSync(join(tmpdir(), 'statewright-bench-'))
/** @type {{ place: string, store: import('../dist/src/index.js').SessionStore, sideBySide: number }[]} */
const stores = [{ place: 'a folder', store: fileStore({ dir }), sideBySide: 1 }]
if (connectionString)
  stores.push({
    place: 'Postgres',
    store: postgresStore({ connectionString, schema: 'lists' }),
    sideBySide: 200,
  })
let isSlow = false
try {
  for (const { place, store, sideBySide } of stores) {
    const each = await fill(store, sideBySide)
    console.log(`${count} sessions in ${place}: ${each.toFixed(3)} ms for each`)
    if (place === 'Postgres') {
      const pool = new pg.Pool({ connectionString })
      await pool.query('ANALYZE')
      await pool.end()
    }
    for (const options of [
      {},
      { state: 'WAITING_FOR_INPUT' },
      { agent: 'agent-3' },
      { agent: 'agent-3', state: ['PAUSED', 'WAITING_FOR_INPUT'] },
      { tags: { user: 'user-42' } },
      { tags: { tenant: 'tenant-0' } },
      { tags: { tenant: 'tenant-0', user: 'user-42' } },
      { tags: { tenant: 'tenant-0' }, state: 'WAITING_FOR_INPUT' },
      { tags: { user: 'nobody' } },
      { prefix: 'user-42' },
      { prefix: 'user-42', children: true },
      { parent: 'user-48:48' },
    ]) {
      const times = []
      let found = 0
      let after
      for (let n = 0; n < 21; n += 1) {
        const start = performance.now()
        const page = await store.list({ ...options, limit: 50, after })
        times.push(performance.now() - start)
        found = Math.max(found, page.length)
        after = n % 2 ? undefined : page.at(-1)
      }
      times.sort((a, b) => a - b)
      isSlow ||= times[10] > goalMs
      console.log(
        `list ${JSON.stringify(options)} in ${place}, ${found} found: median ${times[10].toFixed(2)} ms, worst ${times[20].toFixed(2)} ms (goal ≤ ${goalMs})`,
      )
    }
  }
} finally {
  for (const { store } of stores) await store.close()
  rmSync(dir, { recursive: true })
}
process.exitCode = isSlow ? 1 : 0
