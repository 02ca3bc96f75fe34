import { memoryStore } from '../../src/index.js'
import { startStudio } from '../../src/studio/index.js'
import { eventful, fillStore, rehearsedAgent } from './rehearsed.js'

/** `npm run studio`: the studio with a session of every kind, and one that starts when you press Enter. */
const store = memoryStore()
const { agent } = await fillStore(store)
const studio = await startStudio({
  store,
  agent,
  port: Number(process.argv[2] ?? 0),
  title: 'rehearsed sessions',
})
console.log(`${studio.url}\nEnter begins another run, Ctrl-C ends it.`)

let count = 0
process.stdin.on('data', () => {
  void live()
})

async function live(): Promise<void> {
  count += 1
  const session = `live-${count}`
  // A failing turn has no text to stream.
  const streamed = eventful.map((turn) =>
    'status' in turn ? turn : { ...turn, chunkSize: 4, chunkDelayMs: 80 },
  )
  const another = await rehearsedAgent(store, streamed)
  studio.attach(another.agent.run('Pay the invoice, slowly.', { session }))
  console.log(`Session ${session} has begun.`)
}
