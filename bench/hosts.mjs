// What driving sessions costs: beside `resume` in one process, on Postgres, and by the engines, each with one process.
// Usage: npm run bench:hosts [-- --quick]. The engines are those of test/hosts, which installs them.
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createAgent, drive, memoryStore } from '../dist/src/index.js'
import { startRehearsal } from '../dist/src/rehearsal/index.js'
import { postgresStore } from '../dist/src/stores/postgres/index.js'
import { ownPostgres } from '../scripts/own-postgres.mjs'
import { agentsOf } from '../test/hosts/cast.mjs'
import { openLedger } from '../test/hosts/ledger.mjs'
import { median } from './statistics.mjs'

const quick = process.argv.includes('--quick')
const rows = []
const row = (measure, value) => {
  rows.push({ measure, value })
  console.log(`${measure}: ${value}`)
}

const plain = {
  provider: 'bench',
  model: 'bench',
  request: () =>
    Promise.resolve({
      text: 'Done.',
      reasoning: '',
      refusal: null,
      toolCalls: [],
      finishReason: 'stop',
      complete: true,
      usage: null,
      model: 'bench',
    }),
}

/** In turn, in pairs: the machine's drift hits both alike. */
async function beside(store, rounds) {
  const agent = createAgent({ model: plain, store })
  const times = { drive: [], resume: [] }
  const timed = async (name, work) => {
    const start = performance.now()
    await work()
    times[name].push(performance.now() - start)
  }
  for (let i = 0; i < rounds + 20; i++) {
    if (i === 20) times.drive.length = times.resume.length = 0
    for (const name of i % 2 === 0 ? ['drive', 'resume'] : ['resume', 'drive']) {
      const session = `${name}-${i}`
      // A run that was at work when its process died.
      await agent.run('Go.', { session }).result
      const cut = await agent.fork(session, 2)
      await timed(name, async () => {
        if (name === 'drive') await drive(agent, { session: cut })
        else await (await agent.resume(cut)).result
      })
    }
  }
  const ratios = times.drive.map((time, i) => time / times.resume[i])
  return { drive: median(times.drive), resume: median(times.resume), ratio: median(ratios) }
}

const memory = await beside(memoryStore(), quick ? 200 : 1000)
row('a drive of a run that was interrupted, memory store', `${memory.drive.toFixed(3)} ms`)
row('against resume, in pairs', `${memory.ratio.toFixed(3)} × (goal ≤ 1.05 ×)`)

const server = await ownPostgres()
if (server) {
  const pool = new pg.Pool({ connectionString: server.url })
  let statements = 0
  const query = pool.query.bind(pool)
  pool.query = (...given) => {
    statements += 1
    return query(...given)
  }
  const store = postgresStore({ pool })
  const far = await beside(store, quick ? 50 : 200)
  row('the same, Postgres store', `${far.drive.toFixed(2)} ms (${far.ratio.toFixed(3)} × of resume)`)
  statements = 0
  const agent = createAgent({ model: plain, store })
  for (let i = 0; i < 50; i++) await drive(agent, { session: `count-${i}`, input: 'Go.' })
  row('statements of a drive of one step, Postgres store', (statements / 50).toFixed(1))
  await store.close()
  await pool.end()
  if (existsSync(new URL('../test/hosts/node_modules/@restatedev', import.meta.url)))
    for (const name of ['dbos', 'restate']) await engine(name, server)
  await server.stop()
}
console.table(rows)
process.exit(0)

/** Sessions of one answer each, begun one after the other, and then all at once; with one host process. */
async function engine(name, server) {
  const ledger = await openLedger()
  const rehearsal = await startRehearsal({
    scenario: { turns: [{ text: 'Done.' }], onExhausted: 'repeatLast' },
  })
  const cast = { postgres: server.url, model: rehearsal.url, ledger: ledger.url }
  const { store, agents } = agentsOf(cast)
  const given = { postgres: server.url, agents, server, processes: 1 }
  const own =
    name === 'dbos'
      ? await (await import('../test/hosts/dbos-engine.mjs')).dbosEngine(given)
      : await (await import('../test/hosts/restate-engine.mjs')).restateEngine(given)
  const settings = { ...cast, ...own.settings, slot: 0, id: 'bench', drainMs: 0 }
  const host = fork(own.file, [JSON.stringify(settings)], { execPath: own.execPath })
  await new Promise((resolve) => host.once('message', resolve))
  await own.ready?.()
  const ended = async (id) => {
    while ((await store.get(id))?.summary?.state !== 'COMPLETED') await sleep(2)
  }
  const times = []
  for (let i = 0; i < (quick ? 10 : 40); i++) {
    const start = performance.now()
    await own.begin(`bench-${name}-${i}`)
    await ended(`bench-${name}-${i}`)
    times.push(performance.now() - start)
  }
  row(`from asking to the end of a session of one answer, ${name}`, `${median(times).toFixed(0)} ms`)
  const many = quick ? 50 : 200
  const start = performance.now()
  const ids = Array.from({ length: many }, (_, i) => `many-${name}-${i}`)
  await Promise.all(ids.map((id) => own.begin(id)))
  for (const id of ids) await ended(id)
  row(`sessions a second, one process, ${name}`, (many / ((performance.now() - start) / 1000)).toFixed(0))
  host.kill('SIGKILL')
  await own.close()
  await store.close()
  await rehearsal.close()
  ledger.close()
}
