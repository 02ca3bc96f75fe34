// Many sessions in Postgres: ten thousand wait for people, and a thousand are active in two processes, on a slow model. Measures the
// cost, the time of lists and sweeps under this load, and the effect of a dead process.
// Usage: npm run bench -- scale [--quick] [--write]
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { listStrandedSessions } from '../dist/src/index.js'
import { postgresStore } from '../dist/src/stores/postgres/index.js'
import { ownPostgres } from '../scripts/own-postgres.mjs'
import { table, written } from './block.mjs'
import { agentsOf } from './scale/cast.mjs'
import { between, openWorker } from './scale/processes.mjs'
import { at, median } from './statistics.mjs'

const quick = process.argv.includes('--quick')
const [parked, active, answered] = quick ? [1000, 200, 20] : [10_000, 1000, 50]
const modelMs = [2000, 6000]
const [pacedMs, fastMs] = quick ? [12_000, 5000] : [45_000, 15_000]

const server = await ownPostgres()
if (server === null) {
  console.log(
    'Nothing measured: there is no Postgres here, and it cannot be installed without root and apt-get.',
  )
  process.exit(0)
}
const pool = new pg.Pool({ connectionString: server.url, max: 2 })
// An idle connection fails when the server stops.
pool.on('error', () => undefined)
const store = postgresStore({ connectionString: server.url })
const { agent, agents } = agentsOf(store, { waitMs: [0, 0], isOver: true }, () => undefined)
await store.list({ limit: 1 })

const timed = async (work) => {
  const start = performance.now()
  const value = await work()
  return { ms: performance.now() - start, value }
}
const sizes = async () => {
  const { rows } = await pool.query(
    `SELECT pg_total_relation_size('statewright.records') + pg_total_relation_size('statewright.sessions')
       + pg_total_relation_size('statewright.inbox') AS bytes,
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal`,
  )
  return { bytes: Number(rows[0].bytes), wal: Number(rows[0].wal) }
}
/** The active sessions without a lease owner, page by page. This is the query of a DBOS process every ten seconds. */
const unheld = async () => {
  const found = []
  let cursor
  do {
    const page = await store.list({ state: ['RUNNING', 'WAITING_FOR_TOOL'], limit: 500, after: cursor })
    found.push(...page.filter(({ holder }) => holder === null).map(({ id }) => id))
    cursor = page.length === 500 ? page.at(-1) : undefined
  } while (cursor)
  return found
}
const log = (...words) => console.log(...words)

let workers = await Promise.all([openWorker(server.url), openWorker(server.url)])
const all = (what, optionsOf = () => ({})) =>
  Promise.all(workers.map((worker, n) => worker.ask(what, optionsOf(n))))
const half = (ids) => (n) => ({ ids: ids.filter((_, i) => i % 2 === n) })

// A few sessions first, to compile the code and open the connections.
const warm = Array.from({ length: 400 }, (_, i) => `parked-warm-${i}`)
await all('park', half(warm))
const [empty, emptySize] = [await all('stats'), await sizes()]
const ids = Array.from({ length: parked }, (_, i) => `parked-${i}`)
const parking = await timed(() => all('park', half(ids)))
const [quiet, parkedSize] = [await all('stats'), await sizes()]
const park = between(empty, quiet)
log(`${parked} parked in ${(parking.ms / 1000).toFixed(1)} s`, park)

const working = Array.from({ length: active }, (_, i) => `working-${i}`)
await all('pace', () => ({ waitMs: modelMs }))
await all('work', half(working))
// The first answers arrive at once; later steps spread out.
await sleep(modelMs[1])
const [begun, begunSize] = [await all('stats'), await sizes()]
const meanwhile = { list: [], waiting: [], stranded: [], sweep: [], tell: [], on: [] }
const pacedUntil = performance.now() + pacedMs
for (let i = 0; performance.now() < pacedUntil; i += 1) {
  meanwhile.list.push((await timed(() => store.list({ limit: 50 }))).ms)
  meanwhile.waiting.push((await timed(() => store.list({ state: 'WAITING_FOR_INPUT', limit: 50 }))).ms)
  const stranded = await timed(() => listStrandedSessions(agents, store))
  const look = await timed(unheld)
  if (stranded.value.length > 0 || look.value.length > 0)
    throw new Error('A session was lost while all were held.')
  meanwhile.stranded.push(stranded.ms)
  meanwhile.sweep.push(look.ms)
  if (i < answered) {
    const id = ids[i * Math.floor(parked / answered)]
    const toldAt = performance.timeOrigin + performance.now()
    const telling = await timed(() => agent.send(id, { type: 'approve', callId: 'call-0' }))
    meanwhile.tell.push(telling.ms)
    meanwhile.on.push((await workers[i % 2].ask('goOn', { id })) - toldAt)
  }
  await sleep(quick ? 100 : 300)
}
const [after, afterSize] = [await all('stats'), await sizes()]
const paced = between(begun, after)
log('paced', paced)

// The same sessions, at the full speed of the machine.
await all('pace', () => ({ waitMs: [0, 0] }))
await sleep(modelMs[1])
const fastBefore = await all('stats')
const fastTime = await timed(() => sleep(fastMs))
const fast = between(fastBefore, await all('stats'))
log('fast', fast)

// One process dies. The database sees the closed connection at once on this machine. On another machine, the leases have to expire.
await all('pace', () => ({ waitMs: modelMs }))
await sleep(modelMs[1])
const [dead, alive] = workers
await dead.kill()
workers = [alive]
const look = await timed(unheld)
const takenOver = await timed(() => alive.ask('work', { ids: look.value }))
log(`${look.value.length} found in ${look.ms.toFixed(0)} ms, taken over in ${takenOver.ms.toFixed(0)} ms`)
await alive.ask('pace', { isOver: true, waitMs: [0, 0] })
await alive.ask('end')
const open = (await store.list({ state: ['RUNNING', 'WAITING_FOR_TOOL'], limit: 10 })).length
const ended = (await store.list({ state: 'COMPLETED', limit: 2 * active })).length
const still = (await store.list({ state: 'WAITING_FOR_INPUT', limit: 2 * parked })).length
const toldNow = meanwhile.on.length
if (open !== 0 || ended !== active + toldNow || still !== parked + warm.length - toldNow)
  throw new Error(`Not as it should be: ${open} open, ${ended} completed, ${still} waiting.`)
await alive.kill()
await store.close()
await pool.end()
await server.stop()

const ms = (values) => `${median(values).toFixed(1)} ms (90th percentile ${at(values, 0.9).toFixed(0)} ms)`
const KiB = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`
const number = (value, digits = 0) =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
const parkedBytes = (parkedSize.bytes - emptySize.bytes) / parked
const stepBytes = (afterSize.bytes - begunSize.bytes) / paced.steps
const stepWal = (afterSize.wal - begunSize.wal) / paced.steps
const sessionHeap = between(quiet, begun).heap / active
const MiB = (bytes) => `${number(bytes / 1024 ** 2)} MiB`
const rss = (stats) => Math.max(...stats.map((one) => one.rss))
const perSecond = fast.steps / (fastTime.ms / 1000)
const beat = paced.kinds.get('heartbeat') ?? { count: 1, ms: 0 }
const inboxes = paced.kinds.get('look into the inboxes') ?? { count: 1, ms: 0 }
const measured = [
  [
    `parking ${number(parked)} sessions (start, one model request, release)`,
    `${number(parked / (parking.ms / 1000))} per second`,
  ],
  ['statements to park one session', number(park.statements / parked, 1)],
  ['a parked session in the processes', `${KiB(Math.max(0, park.heap / parked))} of heap, no lease`],
  ['a parked session in Postgres, including indexes', KiB(parkedBytes)],
  [
    `${number(active)} active sessions in 2 processes, with a model that takes ${modelMs.map((time) => time / 1000).join(' to ')} s`,
    `${number(paced.steps / (pacedMs / 1000))} steps per second`,
  ],
  ['heap for each active session after one or two answers', KiB(sessionHeap)],
  [`RSS of a process with ${number(active / 2)} active sessions`, MiB(rss(after))],
  ['statements per step', number(paced.statements / paced.steps, 2)],
  ['CPU of the processes per step', `${number(paced.cpuMs / paced.steps, 2)} ms`],
  ['a step in Postgres, and in its write-ahead log', `${KiB(stepBytes)}, ${KiB(stepWal)}`],
  [
    `heartbeat of ${number(active / 2)} sessions, every 10 s`,
    `one statement, ${(beat.ms / beat.count).toFixed(0)} ms`,
  ],
  [`reading their inboxes, every second`, `one statement, ${(inboxes.ms / inboxes.count).toFixed(0)} ms`],
  ['a page of 50 sessions under this load', ms(meanwhile.list)],
  ['a page of 50 sessions that wait for people', ms(meanwhile.waiting)],
  [`\`listStrandedSessions\` over ${number(parked + active)} open sessions`, ms(meanwhile.stranded)],
  [`a sweep over ${number(active)} active sessions`, ms(meanwhile.sweep)],
  ['`agent.send` to a parked session', ms(meanwhile.send)],
  ['from `agent.send` to the next model request', ms(meanwhile.on)],
  ['the same sessions, with a model that answers immediately', `${number(perSecond)} steps per second`],
  [
    `a sweep that finds ${number(look.value.length)} sessions of a killed process`,
    `${look.ms.toFixed(0)} ms`,
  ],
  ['until the other process has sent a request for each session', `${(takenOver.ms / 1000).toFixed(1)} s`],
].map(([what, figure]) => ({ measured: what, '': figure }))

const daySeconds = 86_400
const stepsAnAnswer = 3
const GiB = (bytes) => (bytes < 1024 ** 3 ? MiB(bytes) : `${number(bytes / 1024 ** 3, 1)} GiB`)
const percent = (part) => (part < 0.001 ? 'under 0.1 %' : `${number(part * 100, 1)} %`)
const stepSeconds = (modelMs[0] + modelMs[1]) / 2000
const column = (count) => {
  const stepsADay = (count * stepsAnAnswer) / daySeconds
  const busy = count / 100
  const busySteps = busy / stepSeconds
  return {
    parked: GiB(count * parkedBytes),
    year: GiB(count * 365 * stepsAnAnswer * stepBytes),
    steps: number(stepsADay, stepsADay < 10 ? 2 : 0),
    share: percent(stepsADay / perSecond),
    stranded: `${number(((median(meanwhile.stranded) / (parked + active)) * count) / 1000, 1)} s`,
    busy: `${number(busy)}, ${number(busySteps)} steps per second`,
    memory: MiB(busy * sessionHeap),
    machines: number(Math.max(1, Math.ceil((2 * busySteps) / perSecond))),
    statements: number(busySteps * (paced.statements / paced.steps)),
  }
}
const [small, large] = [column(10_000), column(1_000_000)]
const extrapolated = [
  ['in Postgres while they wait', 'parked'],
  [`after a year with one answer a day, ${stepsAnAnswer} steps each, nothing deleted`, 'year'],
  ['steps per second, spread over the day', 'steps'],
  ['share of the throughput of this machine', 'share'],
  ['`listStrandedSessions` over all of them', 'stranded'],
  [`one in a hundred active at once, with a model that takes ${stepSeconds} s`, 'busy'],
  ['heap of the processes for the active sessions', 'memory'],
  ['machines like this one at half load, including Postgres', 'machines'],
  ['statements per second', 'statements'],
].map(([what, key]) => ({
  extrapolated: what,
  '10,000 sessions': small[key],
  '1,000,000 sessions': large[key],
}))

const command = `\`npm run bench -- scale${quick ? ' --quick' : ''}\``
const text = [
  table(measured),
  table(extrapolated),
  `Measured with ${number(parked)} parked and ${number(active)} active sessions in one Postgres (without fsync) on the same two cores ` +
    `as the processes. Node ${process.version}, ${new Date().toISOString().slice(0, 10)}, ${command}.`,
].join('\n\n')
log(`\n${text}`)
if (process.argv.includes('--write')) {
  const file = new URL('../docs/scale.md', import.meta.url)
  writeFileSync(file, written(readFileSync(file, 'utf8'), 'scale', text))
}
process.exit(0)
