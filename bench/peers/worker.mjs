// One measurement of one peer in a separate process: `worker.mjs CASE` with CASE as JSON. Prints one JSON line. Compares every text,
// and the checksum of the tool's inputs.
import { setTimeout as sleep } from 'node:timers/promises'
import { keptBytes } from '../kept-bytes.mjs'
import { lastText, words } from '../scripted.mjs'
import { countingTool, sumOf } from './tool.mjs'

const {
  what,
  file,
  url,
  stream = true,
  steps = 1,
  chunks,
  runs = 1,
  warmup = 0,
} = JSON.parse(process.argv[2])
const model = chunks ? `chunks-${chunks}` : `steps-${steps}`
const { read, sum } = countingTool()

function refuse(why) {
  throw new Error(`wrong work: ${why}`)
}

// Peers print to stderr. stdout carries one line with the figure.
console.log = console.error

/** Holds the resolver, as a real tool's dependency would. An unreachable resolver would let the promise be collected. */
const waiting = []
const parkedRead = () => new Promise((resolve) => waiting.push(resolve))

const start = performance.now()
const { default: create, alwaysStreams = false } = await import(file)
const runner = await create({ baseURL: url, model, stream, read: what === 'parked' ? parkedRead : read })
const wanted = chunks ? words(chunks).join('') : lastText(stream || alwaysStreams)

async function run() {
  const text = await runner()
  if (text !== wanted) refuse(`the text ${JSON.stringify(text)?.slice(0, 80)}`)
}

async function parked() {
  const retained = []
  const park = async (count) => {
    for (let i = 0; i < count; i += 50) {
      for (let j = 0; j < 50; j++) {
        const running = runner()
        running.catch((error) => {
          console.error(error)
          process.exit(1)
        })
        retained.push(running)
      }
      while (waiting.length < retained.length) await sleep(1)
    }
  }
  return (await keptBytes(park, runs)) / runs
}

async function timed() {
  for (let i = 0; i < warmup; i++) await run()
  const cpu = process.cpuUsage()
  const begin = performance.now()
  if (what === 'concurrent') await Promise.all(Array.from({ length: runs }, run))
  else for (let i = 0; i < runs; i++) await run()
  const { user, system } = process.cpuUsage(cpu)
  const per = runs * (chunks ?? steps)
  return what === 'concurrent' ? (performance.now() - begin) / 1000 / runs : (user + system) / per
}

let value
if (what === 'parked') value = await parked()
else if (what === 'start') {
  await run()
  value = performance.now() - start
} else value = await timed()

const all = runs + warmup
if (what !== 'parked' && !chunks && sum() !== sumOf(steps, all))
  refuse(`the tool's sum is ${sum()}, not ${sumOf(steps, all)}`)
process.stdout.write(JSON.stringify({ value, requests: what === 'parked' ? runs + 200 : all * steps }))
process.exit(0)
