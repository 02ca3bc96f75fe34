import { SimulatedClock } from 'xstate'
import { createLimiter } from '../../src/fleet/index.js'
import { createAgent } from '../../src/index.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { Recorded } from '../support/spans.js'

/** Two runs behind a limiter that allows one request at a time. The second run waits. */
async function open() {
  const [clock, manual, recorded] = [new SimulatedClock(), new ManualModel(), new Recorded()]
  const model = createLimiter({ id: 'openai', concurrency: 1, clock }).limit(manual)
  const agent = createAgent({ model, clock, telemetry: recorded.otel() })
  const runs = [agent.run('One.'), agent.run('Two.')] as const
  const isWaiting = new Promise<void>((resolve) => {
    runs[1].events$.subscribe(({ type }) => (type === 'waiting_for_slot' ? resolve() : undefined))
  })
  await isWaiting
  clock.increment(4000)
  return { manual, recorded, runs }
}

/** Resolves per request after it has arrived. Some code is loaded lazily. */
async function answer(manual: ManualModel): Promise<void> {
  while (!manual.pending) await settled()
  manual.pending.answer({ text: 'Done.' })
}

const waitsOf = async (recorded: Recorded) => (await recorded.metrics())['statewright.limiter.wait.duration']

test('a request that waits for a limiter has an event, a duration, and a metric by the limiter', async () => {
  const { manual, recorded, runs } = await open()
  await answer(manual)
  await runs[0].result
  await answer(manual)
  await runs[1].result
  const [first, second] = recorded.named('chat')
  expect(first?.events).toEqual([])
  expect(first?.attributes).not.toHaveProperty('statewright.waiting_for_slot.duration')
  expect(second?.events).toMatchObject([
    {
      name: 'statewright.waiting_for_slot',
      attributes: {
        'statewright.waiting_for_slot.limiter': 'openai',
        'statewright.waiting_for_slot.ahead': 0,
      },
    },
  ])
  expect(second?.attributes).toMatchObject({
    'statewright.waiting_for_slot.duration': 4,
    'statewright.accepted': true,
  })
  expect(await waitsOf(recorded)).toEqual([{ attributes: { limiter: 'openai' }, value: 4 }])
})

test('a request that is stopped while it waits has them, too', async () => {
  const { manual, recorded, runs } = await open()
  runs[1].cancel()
  await runs[1].result
  const [stopped] = recorded.named('chat')
  expect(stopped?.events.map(({ name }) => name)).toEqual(['statewright.waiting_for_slot'])
  expect(stopped?.attributes).toHaveProperty(['statewright.waiting_for_slot.duration'])
  expect(stopped?.attributes).toMatchObject({ 'statewright.cancelled': true })
  expect(await waitsOf(recorded)).toMatchObject([{ attributes: { limiter: 'openai' } }])
  await answer(manual)
  await runs[0].result
  expect(recorded.open).toBe(0)
})
