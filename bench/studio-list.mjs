/**
 * The cost of the studio's list among 100,000 sessions, in a folder and in Postgres. Compares a start that finds stored digests with
 * a start that reads the logs itself, over a store without digests. Then measures a list page by words, filters and orders. Each
 * start is a separate process. The CPU time of the process is reported too, because a busy machine barely changes it.
 * Usage: npm run bench -- studio-list [--sessions 10000]
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'libsql'
import pg from 'pg'
import { z } from 'zod'
import { createAgent, defineTool, memoryStore, openaiChat } from '../dist/src/index.js'
import { startRehearsal } from '../dist/src/rehearsal/index.js'
import { openStore } from '../dist/src/stores/index.js'
import { startStudio } from '../dist/src/studio/index.js'

const goalMs = 300
const asks = 15
/** The number of logs that a start without digests reads. */
const mostRead = 500
const words = ['amber', 'birch', 'cobalt', 'dune', 'ember', 'fjord', 'grove', 'heron', 'iris', 'juniper']
const queries = {
  'the first page': {},
  'the first page, after a session was written': { isAfterWrite: true },
  'a word of a message, in a tenth': { q: 'heron' },
  'two words, in a hundredth': { q: 'heron monsoon' },
  'a word that is nowhere': { q: 'zeppelin' },
  'by tool': { q: 'tool:look_up' },
  'by state and tag': { q: 'state:waiting_for_input tag:tenant=3' },
  'by cost': { q: 'cost>0.0001' },
  'sorted by cost': { sort: 'cost' },
  'the last page, sorted by tokens': { sort: 'tokens', offset: 1_000_000 },
}

const at = (values, part) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]

/** Logs of real sessions, copied under many ids. */
async function playSessions() {
  const tool = (name, more) =>
    defineTool({
      name,
      description: name,
      input: z.object({ what: z.string() }),
      execute: () => 'Done.',
      ...more,
    })
  const played = []
  for (const [i, word] of words.entries()) {
    for (const season of words.map((_, n) => (n === 7 ? 'monsoon' : `season ${n}`))) {
      const calls = [{ id: 'c', name: i % 2 ? 'look_up' : 'pay', arguments: { what: word } }]
      const text = `What I know of ${word} in the ${season}: ${`${word} and more of it, `.repeat(20)}.`
      const rehearsal = await startRehearsal({ turns: [{ toolCalls: calls }, { text }] })
      const store = memoryStore()
      const agent = createAgent({
        model: openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' }),
        prices: { rehearsal: { inputPerMillion: 1 + i, outputPerMillion: 4 } },
        tools: [tool('look_up', { readOnly: true }), tool('pay', { needsApproval: true })],
        store,
      })
      await agent.run(`Tell me of ${word} in the ${season}.`, { session: 's' }).result
      played.push({ records: store.read('s'), summary: store.get('s').summary })
      await rehearsal.close()
    }
  }
  return played
}

async function write(store, id, records, summary) {
  const lease = await store.acquire(id, { holder: 'bench', ttlMs: 60_000 })
  const added = await store.append(lease, records, summary, { release: true })
  if (!added?.released) await store.release(lease)
}

async function fill(store, from, to, played) {
  const sideBySide = 'renewAll' in store && store.read('x') instanceof Promise ? 200 : 1
  for (let first = from; first < to; first += sideBySide) {
    const ids = Array.from({ length: Math.min(sideBySide, to - first) }, (_, i) => first + i)
    await Promise.all(
      ids.map(async (n) => {
        const { records, summary } = played[n % played.length]
        const entry = { ...summary, title: `Session ${n}`, tags: { tenant: String(n % 7) } }
        await write(store, `session-${n}`, records, entry)
      }),
    )
  }
}

/** Equal logs have equal digests. Reading every copy would take minutes. */
async function copyDigests(url, played) {
  const rest = 'CAST(substr(s.id, 9) AS INTEGER)'
  const copied = (schema, createdAt) => `
    INSERT INTO ${schema}digests (session_id, head, created_at, data)
    SELECT s.id, d.head, ${createdAt}, d.data FROM ${schema}sessions s
    JOIN ${schema}digests d ON d.session_id = 'session-' || (${rest} % ${played})
    WHERE ${rest} >= ${played}`
  if (url.startsWith('file:')) {
    const database = new Database(join(url.slice('file:'.length), 'sessions.db'))
    database.exec(copied('', '(SELECT written_at FROM records r WHERE r.session_id = s.id AND r.seq = 1)'))
    database.close()
    return
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(copied('statewright.', 's.created_at'))
  await client.query('ANALYZE')
  await client.end()
}

function ask(url, cookie) {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, headers: { cookie } }, async (response) => {
      const chunks = []
      for await (const chunk of response) chunks.push(chunk)
      resolve({ headers: response.headers, body: Buffer.concat(chunks).toString() })
    }).on('error', reject)
  })
}

async function measure(work) {
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  const value = await work()
  const { user, system } = process.cpuUsage(cpu)
  return { value, ms: performance.now() - began, cpu: (user + system) / 1_000 }
}

/** One start of the studio, and a page that shows its list. */
async function measureStart({ url, count, keeps }) {
  const store = await openStore(url)
  // A spread copy counts as a different store.
  const studio = await startStudio({ store: keeps ? store : { ...store } })
  const opened = (await ask(studio.url, '')).headers
  const cookie = opened['set-cookie'][0].split(';')[0]
  const base = new URL(opened.location, studio.url).href.replace(/\/$/, '')
  const find = async (query) =>
    JSON.parse((await ask(`${base}/api/sessions?${new URLSearchParams(query)}`, cookie)).body)
  const first = await measure(() => find({}))
  // The page requests its list at most once per second.
  const waitUntil = (isSo) =>
    measure(async () => {
      while (!isSo(await find({}))) await wait(1_000)
    })
  const listed = await waitUntil(({ known }) => known === count)
  const { unread } = await find({})
  const read = await waitUntil((view) => view.unread <= Math.max(0, unread - mostRead))
  const pages = {}
  const { summary } = await store.get('session-0')
  for (const [name, { isAfterWrite, ...query }] of Object.entries(queries)) {
    const times = []
    let total = 0
    for (let i = 0; i < asks; i += 1) {
      if (isAfterWrite) await write(store, `session-${i}`, [], summary)
      const { value, ...cost } = await measure(() => find(query))
      times.push(cost)
      total = value.total
    }
    const medianOf = (what) =>
      at(
        times.map((one) => one[what]),
        0.5,
      )
    pages[name] = { cpu: medianOf('cpu'), ms: medianOf('ms'), total }
  }
  const after = await find({})
  await studio.close()
  await store.close()
  return { first, listed, read, logs: unread - after.unread, pages, memory: process.memoryUsage().rss }
}

const startInProcess = (options) =>
  new Promise((resolve, reject) => {
    const child = fork(new URL(import.meta.url), ['--start', JSON.stringify(options)])
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`A start ended with ${code}.`)))
  })

const format = ({ cpu, ms }) => `${cpu.toFixed(0)} ms of CPU, ${ms.toFixed(0)} ms`

async function main(count) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-bench-'))
  const { STATEWRIGHT_TEST_POSTGRES: postgres } = process.env
  const played = await playSessions()
  let isSlow = false
  try {
    for (const [place, url] of [['a folder', `file:${dir}`], ...(postgres ? [['Postgres', postgres]] : [])]) {
      const store = await openStore(url)
      await fill(store, 0, played.length, played)
      await startInProcess({ url, count: played.length, keeps: true })
      await fill(store, played.length, count, played)
      await store.close()
      await copyDigests(url, played.length)
      for (const keeps of [true, false]) {
        const load = loadavg()[0].toFixed(1)
        const { first, listed, read, logs, pages, memory } = await startInProcess({ url, count, keeps })
        const found = keeps ? 'with a saved index' : 'with a store that saves no index'
        console.log(
          `${count} sessions in ${place}, ${found} (load ${load}, ${(memory / 2 ** 20).toFixed(0)} MiB):`,
        )
        console.log(
          `  first page ${format(first)} · then all listed ${format(listed)} · ${logs} logs read ${format(read)}`,
        )
        for (const [name, cost] of Object.entries(pages)) {
          isSlow ||= keeps && cost.cpu > goalMs
          console.log(`  ${name}: ${format(cost)} (${cost.total} found)`)
        }
        isSlow ||= first.cpu > goalMs
      }
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
  process.exitCode = isSlow ? 1 : 0
}

const valueOf = (name) => process.argv[process.argv.indexOf(name) + 1]
if (process.argv.includes('--start')) process.send(await measureStart(JSON.parse(valueOf('--start'))))
else await main(process.argv.includes('--sessions') ? Number(valueOf('--sessions')) : 100_000)
