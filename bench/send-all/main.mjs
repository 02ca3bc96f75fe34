// How soon `sendAll` stops sessions that other processes drive. Four processes drive eleven thousand sessions. A fifth process
// cancels ten thousand of them, is killed halfway, and repeats the call. One second after the receipt, no effect of these sessions
// may start and no record may be written.
// Usage: npm run bench -- send-all [--quick] [--folder] [--write]
import { fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ownPostgres } from '../../scripts/own-postgres.mjs'
import { openWorker } from '../asked-worker.mjs'
import { table, written } from '../block.mjs'
import { openStore } from './store.mjs'

const isQuick = process.argv.includes('--quick')
const onlyFolder = process.argv.includes('--folder')
const [sessionCount, others, modelMs] = isQuick ? [400, 40, 2000] : [10_000, 1000, 60_000]
const processes = 4
const count = sessionCount + others
const goalMs = 1000

/** Sends to all sessions of the tenant, or is killed after this many. */
function runTeller(where, killAfter = Infinity) {
  const child = fork(fileURLToPath(new URL('teller.mjs', import.meta.url)), [
    where,
    'acme',
    String(killAfter),
  ])
  let message = null
  child.on('message', (reply) => (message = reply))
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal, ...message })))
}

async function countSessions(store, options) {
  let count = 0
  let after
  do {
    const page = await store.list({ ...options, limit: 500, after })
    count += page.length
    after = page.length === 500 ? page.at(-1) : undefined
  } while (after)
  return count
}

/** The time of the last record of each session, by id, from the records themselves. */
async function readLastTimes(store, ids) {
  const times = new Map()
  const left = ids.values()
  const read = async () => {
    for (const id of left) {
      const records = await store.read(id)
      times.set(id, records.at(-1)?.at ?? Infinity)
    }
  }
  await Promise.all(Array.from({ length: 20 }, read))
  return times
}

async function measure(name, where) {
  const workers = await Promise.all(
    Array.from({ length: processes }, () =>
      openWorker(new URL('./worker.mjs', import.meta.url), [where, String(modelMs)]),
    ),
  )
  const ids = Array.from({ length: count }, (_, n) => `s-${n}`)
  const tags = (id) => ({ tenant: Number(id.slice(2)) < sessionCount ? 'acme' : 'other' })
  const isTold = (id) => tags(id).tenant === 'acme'
  await Promise.all(
    workers.map(({ ask }, n) => {
      const sessions = ids.filter((_, i) => i % processes === n)
      return ask('start', { sessions, tags: Object.fromEntries(sessions.map((id) => [id, tags(id)])) })
    }),
  )
  const before = await Promise.all(workers.map(({ ask }) => ask('look')))
  const driven = before.reduce((sum, { driving }) => sum + driving, 0)
  const killed = await runTeller(where, Math.floor(sessionCount / 2))
  const { receipt, at, ms } = await runTeller(where)
  // Effects that start too late would start now, because each model has answered by then.
  await sleep(goalMs + 2 * modelMs)
  const looks = await Promise.all(workers.map(({ ask }) => ask('look')))
  for (const { child } of workers) child.kill('SIGKILL')
  const states = new Map(looks.flatMap((look) => look.states))
  const last = new Map(looks.flatMap((look) => look.last))
  const latest = Math.max(...[...last].filter(([id]) => isTold(id)).map(([, time]) => time - at))
  const going = ids.filter((id) => !isTold(id) && !states.has(id) && last.get(id) > at + goalMs).length
  // Counted in the store, because a process that stalled past its lease finds that it lost the session, which is now cancelled.
  const store = openStore(where)
  const cancelled = await countSessions(store, { tags: { tenant: 'acme' }, state: 'CANCELLED' })
  const records = await readLastTimes(store, ids.filter(isTold))
  const lastRecord = Math.max(...records.values()) - at
  await store.close()
  const problems = [
    ...(driven === count ? [] : [`Only ${driven} sessions were driven.`]),
    ...(killed.signal === 'SIGKILL' ? [] : ['The first call was not killed.']),
    ...(latest <= goalMs ? [] : [`An effect began ${latest.toFixed(0)} ms after the receipt.`]),
    ...(lastRecord <= goalMs ? [] : [`A record was made ${lastRecord.toFixed(0)} ms after the receipt.`]),
    ...(cancelled === sessionCount ? [] : [`${cancelled} of ${sessionCount} were cancelled.`]),
    ...(going === others ? [] : [`${going} of ${others} others went on.`]),
  ]
  for (const problem of problems) console.log(`WRONG, ${name}: ${problem}`)
  const after = (ms) =>
    ms <= 0 ? `${(-ms).toFixed(0)} ms before the receipt` : `${ms.toFixed(0)} ms after it`
  const row = {
    store: name,
    'sessions, targeted': `${count}, ${sessionCount}`,
    'receipt after the repeated call': `${receipt.sessions}: ${receipt.sent} sent, ${receipt.applied} applied`,
    time: `${(ms / 1000).toFixed(1)} s`,
    cancelled: `${cancelled}`,
    'other sessions that continued': `${going}`,
    'last effect of a targeted session': after(latest),
    'last record of a targeted session': after(lastRecord),
  }
  console.log(table([row]))
  return { problems, row }
}

const dir = mkdtempSync(join(tmpdir(), 'statewright-send-all-'))
const postgres = onlyFolder ? null : await ownPostgres()
if (postgres === null && !onlyFolder) console.log('Not measured with Postgres: there is none here.')
const outcomes = [
  await measure('a folder', dir),
  ...(postgres === null ? [] : [await measure('Postgres', postgres.url)]),
]
await postgres?.stop()
rmSync(dir, { recursive: true, force: true })
const rows = outcomes.map(({ row }) => row)
console.log(table(rows))
if (process.argv.includes('--write')) {
  const docs = fileURLToPath(new URL('../../docs/fleet.md', import.meta.url))
  writeFileSync(docs, written(readFileSync(docs, 'utf8'), 'sendAll', table(rows)))
}
if (outcomes.some(({ problems }) => problems.length > 0)) process.exitCode = 1
