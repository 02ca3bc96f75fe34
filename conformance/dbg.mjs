import { resolvePeers } from './resolve-peers.mjs'
import { startServer } from './server.mjs'
import { cases } from './cases/index.mjs'
import { runCase } from './run-case.mjs'
resolvePeers()
const [name, id] = process.argv.slice(2)
const { open } = await import(`./adapters/${name}.mjs`)
const server = await startServer(1)
const lanes = []
const openLane = server.openLane
server.openLane = (s) => {
  const l = openLane(s)
  lanes.push(l)
  return l
}
const wrapped = (o) => {
  const c = open(o)
  return {
    ...c,
    say: async (...a) => {
      const r = await c.say(...a)
      console.log('say', JSON.stringify(r))
      return r
    },
    answer: async (said) => {
      const r = await c.answer(said)
      console.log('answer', said, JSON.stringify(r))
      return r
    },
  }
}
console.log(
  await runCase(
    cases.find((c) => c.id === id),
    { lacks: {}, open: wrapped, column: 'documented', server, repeats: false },
  ),
)
for (const l of lanes) for (const r of l.requests) console.log(JSON.stringify(r.body).slice(0, 1500))
process.exit()
