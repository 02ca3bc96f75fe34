// The cost of a request in the provider alone, over Node's HTTP, an undici dispatcher, and fetch. Uses the same kind of process and
// the same loopback server, alternating. Reports medians with their spread. Usage: npm run bench -- wire [--quick]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { runWorker } from './run-worker.mjs'
import { median, spread } from './statistics.mjs'

const quick = process.argv.includes('--quick')
const rounds = quick ? 3 : 9
const transports = ['fetch', 'http', 'dispatcher']
const here = (name) => fileURLToPath(new URL(name, import.meta.url))

const server = fork(here('./server.mjs'))
const [url] = await once(server, 'message')

async function served() {
  server.send('count')
  const [count] = await once(server, 'message')
  return count
}

async function worker(options) {
  const before = await served()
  const measured = runWorker('./wire-worker.mjs', { url, warmup: 0, ...options })
  const count = (await served()) - before
  if (count !== measured.requests)
    throw new Error(`wrong work: the server had ${count} requests, not ${measured.requests}`)
  return measured
}

const rows = []
/** Alternates all transports, and reverses the order each time, so that drift affects all equally. */
async function row(name, key, per, options) {
  const results = { http: [], fetch: [], dispatcher: [] }
  for (let i = 0; i < rounds; i++) {
    const order = i % 2 === 0 ? transports : transports.toReversed()
    for (const transport of order)
      results[transport].push((await worker({ ...options, transport }))[key] / per)
  }
  const us = (values) => {
    const value = median(values)
    return `${value.toFixed(value < 20 ? 2 : 0)} µs`
  }
  const ratio = (transport) => {
    const ratios = results[transport].map((value, i) => value / results.fetch[i])
    return `${median(ratios).toFixed(2)} × (${spread(ratios)})`
  }
  rows.push({
    measure: name,
    fetch: us(results.fetch),
    "Node's HTTP": us(results.http),
    'of fetch': ratio('http'),
    dispatcher: us(results.dispatcher),
    'of fetch ': ratio('dispatcher'),
  })
  console.log(`${name}: ${ratio('http')}, dispatcher ${ratio('dispatcher')}`)
}

const loops = quick ? 20 : 40
for (const stream of [true, false]) {
  const what = stream ? 'streamed' : 'not streamed'
  const options = { stream, steps: 50, runs: loops, warmup: loops }
  await row(`CPU a request, 50 steps, ${what}`, 'cpuUs', 50 * loops, options)
}
await row('CPU a chunk, 10,000 chunks', 'cpuUs', 10_000 * 5, {
  stream: true,
  chunks: 10_000,
  runs: 5,
  warmup: 5,
})
await row('wall a request, 200 loops of 10 at once', 'wallUs', 2000, {
  stream: true,
  steps: 10,
  runs: 200,
  warmup: 200,
  atOnce: true,
})
await row('CPU a request, the first 200 of a process', 'cpuUs', 200, { stream: true, steps: 10, runs: 20 })

console.log(`Node ${process.version}, ${rounds} rounds`)
console.table(rows)
server.kill()
