// The cases of one library in one column, in a process of its own: the parent gets each result as a message.
import { cases } from './cases/index.mjs'
import { facts } from './facts.mjs'
import { resolvePeers } from './resolve-peers.mjs'
import { runCase } from './run-case.mjs'
import { createRandom, startServer } from './server.mjs'

const { name, column, ids, seed, repeats, width } = JSON.parse(process.argv[2])
// What libraries print is for people.
console.log = console.error
console.warn = console.error

const onLoose = (error) => process.send({ loose: String(error?.message ?? error).slice(0, 200) })
process.on('unhandledRejection', onLoose)
process.on('uncaughtException', onLoose)

function shuffled(list) {
  const random = createRandom(seed)
  const keyed = list.map((value) => ({ value, key: random() }))
  return keyed.toSorted((a, b) => a.key - b.key).map(({ value }) => value)
}

async function runAll() {
  if (name !== 'statewright') resolvePeers()
  const { open } = await import(`./adapters/${name}.mjs`)
  const server = await startServer(seed)
  const asked = shuffled(cases.filter(({ id }) => ids.includes(id)))
  const lacks = facts[name].lacks?.[column] ?? {}
  const run = async (one) => {
    process.send({ begins: one.id })
    process.send({ id: one.id, ...(await runCase(one, { name, lacks, open, column, server, repeats })) })
  }
  const queue = asked.filter(({ alone }) => !alone).values()
  const runLane = async () => {
    // oxlint-disable-next-line no-await-in-loop -- one case after the other in each lane
    for (const one of queue) await run(one)
  }
  // Most of a case is waiting for retries.
  await Promise.all(Array.from({ length: width }, runLane))
  // What needs all of the process would fail its neighbours.
  // oxlint-disable-next-line no-await-in-loop -- one case after the other
  for (const one of asked.filter(({ alone }) => alone)) await run(one)
}

try {
  await runAll()
  process.send({ ended: true }, () => process.exit(0))
} catch (error) {
  process.stderr.write(`${error?.stack ?? error}\n`, () => process.exit(1))
}
