// What share of a provider's rate 200 runs get with createLimiter, and how many of their requests are refused; beside it the same
// runs without a limiter, and runs in four processes whose limiters share a store. The provider is a real HTTP server that allows 600
// requests in any minute. Takes about six minutes.
// Usage: npm run bench:limiter
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAgent, defineTool, openaiChat } from 'statewright'
import { createLimiter } from 'statewright/fleet'
import { fileStore } from 'statewright/stores/file'
import { postgresStore } from 'statewright/stores/postgres'
import { ownPostgres } from '../scripts/own-postgres.mjs'

const allowed = 600
const windowMs = 60_000
const runs = 200
/** Requests of a run. */
const steps = 4

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object', properties: { n: { type: 'number' } } },
  readOnly: true,
  execute: () => 'seen',
})

/** A sliding window: the strictest way to count. */
async function startServer() {
  const times = []
  const log = { answered: 0, refused: 0, lastAt: 0 }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const now = performance.now()
    while (times.length > 0 && times[0] <= now - windowMs) times.shift()
    if (times.length >= allowed) {
      log.refused += 1
      const seconds = Math.ceil((times[0] + windowMs - now) / 1000)
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': `${seconds}` })
      response.end(JSON.stringify({ error: { message: 'Slow down.' } }))
      return
    }
    times.push(now)
    const calls = JSON.parse(text).messages.filter(({ role }) => role === 'tool').length
    const message =
      calls === steps - 1
        ? { role: 'assistant', content: 'Done.' }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: `c${calls}`, type: 'function', function: { name: 'look', arguments: `{"n":${calls}}` } },
            ],
          }
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
    const finish = calls === steps - 1 ? 'stop' : 'tool_calls'
    setTimeout(() => {
      log.answered += 1
      log.lastAt = performance.now()
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({ model: 'm', choices: [{ index: 0, message, finish_reason: finish }], usage }),
      )
    }, 100)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, log, baseURL: `http://127.0.0.1:${server.address().port}/v1` }
}

/** The runs of one process: how many have completed. */
async function playRuns(baseURL, count, limiter) {
  const model = openaiChat({ model: 'm', baseURL, apiKey: 'none', ...(limiter && { limiter }) })
  const agent = createAgent({ model, tools: [look], stream: false, prices: null })
  const results = await Promise.all(Array.from({ length: count }, () => agent.run('Go.').result))
  return results.filter(({ state }) => state === 'COMPLETED').length
}

const openStore = (where) =>
  where.startsWith('postgres') ? postgresStore({ connectionString: where }) : fileStore({ dir: where })

/** `play` begins the runs and resolves with how many have completed. Returns whether the goals are met. */
async function measure(name, count, play) {
  const { server, log, baseURL } = await startServer()
  const startedAt = performance.now()
  const completed = await play(baseURL)
  const minutes = (log.lastAt - startedAt) / 60_000
  const share = (value) => `${(100 * value).toFixed(1)} %`
  const rate = log.answered / (allowed * Math.max(1, minutes))
  const refused = log.refused / (log.refused + log.answered)
  console.log(
    `${name}: ${completed} of ${count} runs completed in ${(minutes * 60).toFixed(1)} s, ${log.answered} requests answered ` +
      `(${share(rate)} of the allowed rate), ${log.refused} refused (${share(refused)}).`,
  )
  server.closeAllConnections()
  server.close()
  return rate >= 0.95 && refused <= 0.01 && completed === count
}

const limits = { id: 'bench', requestsPerMinute: allowed }
const processes = 4
const runsOfProcess = 100

/** Runs in several processes whose limiters share a store. */
async function playInProcesses(baseURL, where) {
  const told = Array.from({ length: processes }, () => {
    const child = fork(fileURLToPath(import.meta.url), ['worker', baseURL, where])
    return new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', (code) => reject(new Error(`A process ended with ${code}.`)))
    })
  })
  return (await Promise.all(told)).reduce((sum, one) => sum + one, 0)
}

if (process.argv[2] === 'worker') {
  const [baseURL, where] = process.argv.slice(3)
  const store = openStore(where)
  process.send(await playRuns(baseURL, runsOfProcess, createLimiter({ ...limits, store })), async () => {
    await store.close()
    process.exit()
  })
} else {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-limiter-'))
  const postgres = await ownPostgres()
  if (postgres === null) console.log('Not measured with Postgres: there is none here.')
  const all = processes * runsOfProcess
  const met = [
    await measure('With a limiter', runs, (baseURL) => playRuns(baseURL, runs, createLimiter(limits))),
    await measure(`In ${processes} processes, with a limiter in a folder`, all, (url) =>
      playInProcesses(url, dir),
    ),
    ...(postgres === null
      ? []
      : [
          await measure(`In ${processes} processes, with a limiter in Postgres`, all, (url) =>
            playInProcesses(url, postgres.url),
          ),
        ]),
  ]
  await measure('Without a limiter', runs, (baseURL) => playRuns(baseURL, runs))
  await postgres?.stop()
  rmSync(dir, { recursive: true, force: true })
  if (met.includes(false)) process.exitCode = 1
}
