// The cost of driving sessions in one process, on Postgres, and with the engines. Each engine is compared with its own no-op handler
// of the same kind. The model answers immediately, in the host process.
// Usage: npm run bench -- hosts [--quick] [--write]. test/hosts installs the engines.
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { runSession, memoryStore } from '../dist/src/index.js'
import { postgresStore } from '../dist/src/stores/postgres/index.js'
import { ownPostgres } from '../scripts/own-postgres.mjs'
import { table, written } from './block.mjs'
import { agentOf } from './hosts/cast.mjs'
import { dbos, enginesAreThere, plain, restate } from './hosts/engines.mjs'
import { median } from './statistics.mjs'

const quick = process.argv.includes('--quick')
const steps = 11
const ms = (value) => (value < 0.01 ? '–' : `${value < 20 ? value.toFixed(1) : value.toFixed(0)} ms`)

/** Milliseconds, with the time that the host reports for the work itself. */
async function clocked(work) {
  const start = performance.now()
  const inside = await work()
  return { time: performance.now() - start, inside }
}
const timed = async (work) => (await clocked(work)).time

/** A B C, C B A, …: drift of the machine affects all variants equally. */
async function inTurn(works, rounds, warmUp) {
  const times = works.map(() => [])
  for (let i = -warmUp; i < rounds; i += 1) {
    const order = works.map((_, n) => n)
    if (i % 2) order.reverse()
    for (const n of order) {
      const time = await works[n](i)
      if (i >= 0) times[n].push(time)
    }
  }
  return times
}

/** A `runSession` call for a run whose process died while it was active, next to `resume` of the same run. */
async function besideResume(store, rounds) {
  const agent = agentOf(store)
  const cut = async (session) => {
    await agent.run('1', { session }).result
    return agent.fork(session, 2)
  }
  const [drives, resumes] = await inTurn(
    [
      async (i) => {
        const session = await cut(`drive-${i}`)
        return timed(() => runSession(agent, { session }))
      },
      async (i) => {
        const session = await cut(`resume-${i}`)
        return timed(async () => (await agent.resume(session)).result)
      },
    ],
    rounds,
    20,
  )
  return { ms: median(drives), ratio: median(drives.map((time, i) => time / resumes[i])) }
}

/**
 * Sequential sessions with one answer, and with several. For polling queues, the host reports the duration of `runSession` itself,
 * because the polling interval would hide it.
 */
async function alone(ask, rounds, warmUp) {
  const [floor, one, many] = await inTurn(
    [
      (i) => clocked(() => ask('floor', `floor-${i}`, 1)),
      (i) => clocked(() => ask('ours', `one-${i}`, 1)),
      (i) => clocked(() => ask('ours', `many-${i}`, steps)),
    ],
    rounds,
    warmUp,
  )
  const own = ({ time, inside }) => inside ?? time
  return {
    one: median(one.map(({ time }) => time)),
    floor: median(floor.map(({ time }) => time)),
    ours: Math.max(0, median(one.map(({ time, inside }, i) => inside ?? time - floor[i].time))),
    step: Math.max(0, median(many.map((each, i) => own(each) - own(one[i]))) / (steps - 1)),
  }
}

/** Concurrent sessions: completions per second. Two rounds of each, alternating. */
async function atOnce(ask, count, name) {
  const rates = { floor: [], ours: [] }
  for (const [round, kind] of ['floor', 'ours', 'ours', 'floor'].entries()) {
    const ids = Array.from({ length: count }, (_, i) => `${name}-${round}-${kind}-${i}`)
    const time = await timed(() => Promise.all(ids.map((id) => ask(kind, id, 1))))
    rates[kind].push((count / time) * 1000)
  }
  return { floor: median(rates.floor), ours: median(rates.ours) }
}

/** Statements that Postgres has executed since then, by the store and by others. */
async function counting(pool) {
  const counts = async () => {
    const { rows } = await pool.query(
      `SELECT sum(calls) FILTER (WHERE query LIKE '%"statewright"%') AS ours,
         sum(calls) FILTER (WHERE query NOT LIKE '%"statewright"%' AND query NOT LIKE '%pg_stat_statements%') AS others
       FROM pg_stat_statements`,
    )
    return { ours: Number(rows[0].ours), others: Number(rows[0].others) }
  }
  await pool.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
  return async (work) => {
    const before = await counts()
    await work()
    const after = await counts()
    return { ours: after.ours - before.ours, others: after.others - before.others }
  }
}

const prefixed = (ask, prefix) => (kind, session, count) => ask(kind, `${prefix}-${session}`, count)
const oneByOne = async (work, count) => {
  for (let i = 0; i < count; i += 1) await work(i)
}

const server = await ownPostgres({ preload: 'pg_stat_statements' })
if (server === null) {
  console.log(
    'Nothing measured: there is no Postgres here, and it cannot be installed without root and apt-get.',
  )
  process.exit(0)
}
const pool = new pg.Pool({ connectionString: server.url, max: 4 })
// An idle connection fails when the server stops.
pool.on('error', () => undefined)
const during = await counting(pool)
const stores = { memory: memoryStore(), postgres: postgresStore({ connectionString: server.url }) }

const memory = await besideResume(stores.memory, quick ? 100 : 500)
const far = await besideResume(stores.postgres, quick ? 40 : 150)
const local = {}
for (const [name, store] of Object.entries(stores)) {
  const agent = agentOf(store)
  const ask = async (kind, session, count) => {
    if (kind === 'ours') await runSession(agent, { session, input: `${count}` })
  }
  local[name] = await alone(prefixed(ask, 'here'), quick ? 40 : 150, 20)
}
const postgresAgent = agentOf(stores.postgres)
const counted = async (count, name) => {
  const work = (i) => runSession(postgresAgent, { session: `count-${name}-${i}`, input: `${count}` })
  return (await during(() => oneByOne(work, 20))).ours / 20
}
const drive1 = await counted(1, 'one')
const step1 = ((await counted(steps, 'many')) - drive1) / (steps - 1)
console.log({ memory, far, local, drive1, step1 })

const engines = enginesAreThere() ? { plain, dbos, restate } : { plain }
const names = { plain: 'no engine, started by a parent process', dbos: 'DBOS', restate: 'Restate' }
const by = {}
for (const [name, open] of Object.entries(engines)) {
  by[name] = { rates: {}, statements: null, alone: null }
  for (const processes of [1, 2, 4]) {
    const engine = await open({ postgres: server.url, processes })
    const ask = prefixed(engine.ask, `${name}-${processes}`)
    // Every process loads its code and opens its connections first.
    await Promise.all(Array.from({ length: 20 * processes }, (_, i) => ask('ours', `warm-${i}`, 1)))
    await Promise.all(Array.from({ length: 20 * processes }, (_, i) => ask('floor', `warm-floor-${i}`, 1)))
    if (processes === 1) {
      by[name].alone = await alone(ask, quick ? 10 : 30, 3)
      by[name].statements = await during(() =>
        Promise.all(Array.from({ length: 50 }, (_, i) => ask('ours', `counted-${i}`, 1))),
      )
    }
    const many = (quick ? 60 : 200) * (name === 'plain' ? 2 : 1)
    by[name].rates[processes] = await atOnce(ask, many, 'many')
    console.log(name, processes, by[name].rates[processes], by[name].alone)
    await engine.stop()
  }
}
await stores.postgres.close()
await pool.end()

const share = ({ one, ours }) => `${Math.round((100 * ours) / one)} %`
const rows = [
  ['in process, memory store', local.memory, null],
  ['in process, Postgres store', local.postgres, null],
  ...Object.entries(by).map(([name, measured]) => [names[name], measured.alone, measured]),
].map(([what, measured, engine]) => ({
  'session with one answer': what,
  'total time': ms(measured.one),
  'empty handler': engine ? ms(measured.floor) : '',
  'share of Statewright': engine ? share(measured) : '',
  'each further step': ms(measured.step),
}))
const rate = ({ ours, floor }) => `${ours.toFixed(0)} (empty: ${floor.toFixed(0)})`
const rates = Object.entries(by).map(([name, { rates: of }]) => ({
  'sessions per second': names[name],
  '1 process': rate(of[1]),
  '2 processes': rate(of[2]),
  '4 processes': rate(of[4]),
}))
const statements = [
  { statements: 'by the store, for a call with one step', count: drive1.toFixed(1) },
  { statements: 'by the store, for each further step', count: step1.toFixed(1) },
  ...(by.dbos
    ? [
        {
          statements: 'by DBOS per call, with fifty calls at once',
          count: (by.dbos.statements.others / 50).toFixed(0),
        },
      ]
    : []),
]
const text = [
  table(rows),
  table(rates),
  table(statements),
  'DBOS polls for work every 200 ms, so a session waits up to 200 ms before it starts. The share is the time of ' +
    '`runSession` in its step, without that wait. Requests to Restate and to the empty handler alternate. So do sessions with one answer and sessions with eleven.',
  `In paired measurements, a call for an interrupted run took ${memory.ratio.toFixed(2)} × as long as \`resume\` in memory (goal ≤ 1.05 ×), ` +
    `and ${far.ratio.toFixed(2)} × as long in Postgres. Measured with Node ${process.version}. Host processes, engine, ` +
    `Postgres and the caller shared two cores, so more processes do not help.${quick ? ' A quick round.' : ''} ${new Date().toISOString().slice(0, 10)}, ` +
    `\`npm run bench -- hosts${quick ? ' --quick' : ''}\`.`,
].join('\n\n')
console.log(`\n${text}`)
if (process.argv.includes('--write')) {
  const file = new URL('../docs/scale.md', import.meta.url)
  writeFileSync(file, written(readFileSync(file, 'utf8'), 'hosts', text))
}
await server.stop()
process.exit(0)
