// The cost of other agent loops next to this one. Uses the same script, the same loopback server, one process per figure, alternating.
// `npm run bench -- peers --help` prints the options.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { written } from '../block.mjs'
import { runWorker } from '../run-worker.mjs'
import { checkTheChecker } from './check.mjs'
import { install, nodeFor } from './install.mjs'
import { measures } from './measures.mjs'
import { bare, peers } from './peers.mjs'
import { report } from './report.mjs'

const help = `npm run bench -- peers [OPTIONS]

The loop's cost beside other libraries', as a ratio to a bare loop on the \`openai\` client. Installs the peers into
bench/peers/node_modules when they are not there (750 MB), and writes the table to docs/performance.md.

  --quick        three short rounds, and nothing is written
  --only NAME    this one alone, beside the bare loop; may be given again, and nothing is written
                 (${peers.map(({ name }) => name).join(', ')})
  --rounds N     how often everything is measured: 5, with --quick 3
  --node PATH    the Node that runs everything; several peers need 22.19 or later. Without it: this one, or where it is
                 older the one that comes with the peers (Linux on x64)
  --help         this text
`

function say(text) {
  process.stderr.write(`${text}\n`)
}

function leave(text) {
  say(text)
  process.exit(2)
}

function readNames() {
  try {
    const text = { type: 'string' }
    const flag = { type: 'boolean', default: false }
    const { values } = parseArgs({
      options: {
        quick: flag,
        help: flag,
        node: text,
        rounds: text,
        only: { ...text, multiple: true, default: [] },
      },
    })
    return values
  } catch (error) {
    return leave(`${error.message}\n\n${help}`)
  }
}

const { quick, only, node: chosen, rounds: wanted, help: wantsHelp } = readNames()
if (wantsHelp) {
  process.stdout.write(help)
  process.exit(0)
}
for (const name of only) {
  if (!peers.some((peer) => peer.name === name)) leave(`There is no peer ${name}.\n\n${help}`)
}
const some = peers.filter(({ name }) => only.length === 0 || name === bare || only.includes(name))

const rounds = Number(wanted ?? (quick ? 3 : 5))
if (!Number.isSafeInteger(rounds) || rounds < 1)
  leave(`--rounds: '${wanted}' is no number of rounds, such as 5.`)

install(say)
const node = nodeFor(chosen)
if (node.error) leave(node.error)
say(`Node ${node.version} (${node.path})`)

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const server = fork(here('./server.mjs'), { execPath: node.path })
process.on('exit', () => server.kill())
const [url] = await once(server, 'message')

async function account() {
  server.send('account')
  const [message] = await once(server, 'message')
  return message
}

await checkTheChecker(url, account)

/** One figure, or the reason for its absence. */
async function measured(name, { options, flags }) {
  // Disables the libraries' usage reports.
  const env = { ...process.env, MASTRA_TELEMETRY_DISABLED: '1', LANGSMITH_TRACING: 'false' }
  const before = await account()
  try {
    const { value, requests } = runWorker(
      './peers/worker.mjs',
      { ...options, url, file: here(`./runners/${name}.mjs`) },
      flags,
      { node: node.path, env, timeout: 300_000 },
    )
    const { served, refused } = await account()
    const had = served - before.served
    if (refused) return { why: `wrong work: ${refused}` }
    if (had !== requests) return { why: `wrong work: the server had ${had} requests, not ${requests}` }
    return { value }
  } catch (error) {
    const { refused } = await account()
    if (refused) return { why: `wrong work: ${refused}` }
    const line = error.message.split('\n').find((text) => /^\S*Error\b/.test(text))
    return { why: (line ?? error.message).trim().replaceAll(here('../../'), '').slice(0, 200) }
  }
}

const results = []
for (const measure of measures(quick)) {
  const figures = new Map(some.map(({ name }) => [name, []]))
  const failed = new Map()
  for (let round = 0; round < rounds; round++) {
    // Rotates the order, so that drift affects all peers equally.
    const start = (round * 3) % some.length
    for (const { name } of [...some.slice(start), ...some.slice(0, start)]) {
      if (failed.has(name)) continue
      const { value, why } = await measured(name, measure)
      if (why === undefined) figures.get(name).push(value)
      else {
        failed.set(name, why)
        say(`${name}, ${measure.title}: ${why}`)
      }
    }
    say(`${measure.title}: round ${round + 1} of ${rounds}`)
  }
  results.push({ measure, figures, failed })
}

const text = report({ results, some, node, rounds })
console.log(text)
if (quick || only.length > 0) say('Not written: that is for a whole run.')
else {
  const docs = fileURLToPath(new URL('../../docs/performance.md', import.meta.url))
  writeFileSync(docs, written(readFileSync(docs, 'utf8'), 'peers', text))
  say('Written to docs/performance.md.')
}
server.kill()
process.exit(0)
