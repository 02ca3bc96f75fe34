// Kills host processes while they drive sessions, and holds what the sessions come to against what they had to do.
// Usage: npm run test:hosts [-- --host dbos|restate --sessions NUMBER]
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { drive } from '../../dist/src/index.js'
import { startRehearsal } from '../../dist/src/rehearsal/index.js'
import { ownPostgres } from '../../scripts/own-postgres.mjs'
import { agentsOf, asks, payments, turn } from './cast.mjs'
import { openLedger } from './ledger.mjs'
import { Processes } from './processes.mjs'

const { values } = parseArgs({
  options: { host: { type: 'string' }, sessions: { type: 'string', default: '300' } },
})
const engines = {
  dbos: async (given) => (await import('./dbos-engine.mjs')).dbosEngine(given),
  restate: async (given) => (await import('./restate-engine.mjs')).restateEngine(given),
}
const names = values.host ? [values.host] : Object.keys(engines)
const mostMs = 110_000
const atWork = new Set(['RUNNING', 'WAITING_FOR_TOOL'])

/** Tells a session from another process to end, while its model is silent in the middle of an answer; the time it takes. */
async function cancelHanging(id, { engine, agent, store }) {
  const standing = async () => (await store.get(id).catch(() => null)) ?? { holder: null, summary: null }
  await engine.begin(id)
  const giveUpAt = Date.now() + 30_000
  while ((await standing()).holder === null && Date.now() < giveUpAt) await sleep(100)
  await sleep(500)
  const toldAt = Date.now()
  await agent.tell(id, { type: 'cancel', why: 'From outside.' })
  while ((await standing()).summary?.state !== 'CANCELLED' && Date.now() < toldAt + 10_000) await sleep(20)
  return Date.now() - toldAt
}

async function play(name, server, sessions) {
  const startedAt = Date.now()
  const ledger = await openLedger()
  const rehearsal = await startRehearsal({
    scenario: { turns: [turn], onExhausted: 'repeatLast' },
    strict: true,
  })
  const cast = { postgres: server.url, model: rehearsal.url, ledger: ledger.url }
  const { store, agents, agent } = agentsOf(cast)
  const wrong = []
  const engine = await engines[name]({ postgres: server.url, agents, server })
  const hosts = new Processes(engine.file, engine.execPath, { ...cast, ...engine.settings, drainMs: 500 })

  // A session of a version that no process accepts: it stays as it is.
  const old = agentsOf({ ...cast, version: '1', accepts: ['1'] })
  const stop = new AbortController()
  await drive(old.agents, {
    session: `${name}-old-0`,
    input: `${name}-old-0`,
    signal: stop.signal,
    heartbeat: () => setTimeout(() => stop.abort(), 20),
  })
  const before = await store.get(`${name}-old-0`)

  const ids = Array.from({ length: sessions }, (_, i) => `${name}-${i}`)
  await Promise.all([0, 1, 2].map((slot) => hosts.start(slot)))
  await engine.ready?.()
  await engine.begin(`${name}-old-0`)
  let begun = 0
  const beginAll = async () => {
    for (const id of ids) {
      await engine.begin(id).then(
        () => (begun += 1),
        () => undefined,
      )
      // An engine that is called twice.
      if (begun % 7 === 0) await engine.begin(id).catch(() => undefined)
    }
  }
  const beginning = beginAll()
  const killing = setInterval(() => hosts.kill(), 2000)
  const ending = setInterval(() => hosts.term(), 5000)
  let restarted = false
  const unheld = new Map()
  let longest = 0
  const answered = new Map()
  const done = new Set()
  while (done.size < ids.length && Date.now() - startedAt < mostMs) {
    await sleep(500)
    if (!restarted && done.size > ids.length / 3) {
      restarted = true
      await engine.restart()
    }
    let listed
    try {
      listed = await store.list()
    } catch {
      continue
    }
    for (const { id, head, holder, summary } of listed) {
      if (!ids.includes(id)) continue
      const state = summary?.state ?? 'RUNNING'
      if (atWork.has(state) && holder === null) {
        unheld.set(id, unheld.get(id) ?? Date.now())
        longest = Math.max(longest, Date.now() - unheld.get(id))
      } else unheld.delete(id)
      if (state === 'WAITING_FOR_INPUT' && (answered.get(id) ?? 0) < Date.now() - 5000) {
        answered.set(id, Date.now())
        const { run } = await agent.replay(id).catch(() => ({ run: null }))
        const call = run?.pending?.[0]
        // Refused while the server is away, or the host is killed that hears it: said again.
        if (call) await engine.answer(id, call, head).catch(() => answered.delete(id))
      }
      if (!atWork.has(state) && state !== 'WAITING_FOR_INPUT') done.add(id)
    }
    // Those that could not be begun while the server was away.
    if (begun < ids.length) await beginning.then(beginAll)
  }
  clearInterval(killing)
  clearInterval(ending)
  const cancelMs = await cancelHanging(`hang-${name}-1`, { engine, agent, store })
  if (!(cancelMs <= 1500)) wrong.push(`a cancel from outside took ${cancelMs} ms`)
  const seconds = (Date.now() - startedAt) / 1000

  for (const [key, times] of ledger.paid) if (times > 1) wrong.push(`${key} was paid ${times} times`)
  for (const overlap of ledger.overlaps) wrong.push(`two processes in one session: ${overlap}`)
  let interrupted = 0
  for (const id of ids) {
    const { run, messages } = await agent.replay(id).catch(() => ({ run: null, messages: [] }))
    if (run?.state !== 'COMPLETED')
      wrong.push(`${id} is ${run?.state ?? 'not there'} ${run?.error?.message ?? ''}`)
    const results = messages.filter(({ role }) => role === 'tool')
    interrupted += results.filter(({ data }) => data?.status === 'interrupted').length
    if (run && results.length !== payments) wrong.push(`${id} has ${results.length} results`)
    const asked = messages
      .flatMap(({ tool_calls: calls = [] }) => calls)
      .filter((call) => call.function.name === 'sign')
    if (run && asked.length !== (asks(id) ? 1 : 0)) wrong.push(`${id} was asked ${asked.length} times`)
  }
  if (longest > 35_000) wrong.push(`a session was nobody's for ${longest} ms`)
  const after = await store.get(`${name}-old-0`)
  if (after?.head !== before?.head) wrong.push('a version that nobody accepts has run')
  if (hosts.counts.kills < 3) wrong.push(`only ${hosts.counts.kills} kills`)
  await hosts.stop()
  await engine.close()
  await store.close()
  await old.store.close()
  await rehearsal.close()
  ledger.close()
  return {
    name,
    sessions: ids.length,
    seconds,
    ...hosts.counts,
    restarts: restarted ? 1 : 0,
    interrupted,
    unheldMs: longest,
    cancelMs,
    wrong,
  }
}

const server = await ownPostgres()
if (server === null) {
  console.log('Host tests skipped: there is no Postgres here, and it cannot be installed.')
  process.exit(0)
}
const rows = []
try {
  for (const name of names) rows.push(await play(name, server, Number(values.sessions)))
} finally {
  await server.stop()
}
console.table(rows.map(({ wrong, ...row }) => ({ ...row, wrong: wrong.length })))
for (const { name, wrong } of rows)
  for (const problem of wrong.slice(0, 40)) console.log(`${name}: ${problem}`)
process.exit(rows.every(({ wrong }) => wrong.length === 0) ? 0 : 1)
