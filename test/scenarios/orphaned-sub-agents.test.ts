import { SimulatedClock } from 'xstate'
import { createAgent, memoryStore, type SessionStore } from '../../src/index.js'
import { call as callOf, ManualModel } from '../support/manual-model.js'
import { tick, until } from '../support/play.js'

type Clock = SimulatedClock

/** A process with a parent and its sub-agent. A stopped clock simulates a dead process. */
function start(store: SessionStore, clock: Clock) {
  const [parent, child] = [new ManualModel(), new ManualModel()]
  const research = createAgent({ model: child, clock }).asTool({ name: 'research', description: 'Finds.' })
  return { parent, child, agent: createAgent({ model: parent, store, tools: [research], clock }) }
}

const statesIn = async (store: SessionStore) =>
  (await store.list({ children: true }))
    .map(({ summary }) => `${summary?.parent ? 'child' : 'parent'} ${summary?.state}`)
    .sort((a, b) => a.localeCompare(b))

/** A process dies while its sub-agent works. The parent's lease expires first. */
async function dieAtWork() {
  const time = new SimulatedClock()
  const store = memoryStore({ now: () => time.now() })
  const died = start(store, new SimulatedClock())
  died.agent.run('Go.', { session: 's' })
  await until(() => died.parent.pending !== null)
  time.increment(10_000)
  died.parent.pending?.answer({ toolCalls: [callOf('a', 'research', { task: 'Look.' })] })
  await until(() => died.child.pending !== null)
  time.increment(25_000)
  return { time, store }
}

const ended = ['child CANCELLED', 'parent CANCELLED']

describe('a sub-agent whose process has died, while the lease of its session lasts', () => {
  it.each([
    [
      'send',
      async (store: SessionStore, clock: Clock) => {
        await start(store, clock).agent.send('s', { type: 'cancel' })
      },
    ],
    [
      'a run that was resumed',
      async (store: SessionStore, clock: Clock) => {
        const run = await start(store, clock).agent.resume('s')
        run.cancel()
        await run.result
      },
    ],
  ])('ends when the lease expires, if %s has cancelled the parent run', async (_, cancel) => {
    const { time, store } = await dieAtWork()
    await cancel(store, time)
    await tick()
    expect(await statesIn(store)).toEqual(['child RUNNING', 'parent CANCELLED'])
    for (let n = 0; n < 4; n += 1) {
      time.increment(10_000)
      await tick()
    }
    expect(await statesIn(store)).toEqual(ended)
    expect(store.list({ children: true }).map(({ holder }) => holder)).toEqual([null, null])
  })
})
