import { createAgent, memoryStore, type SessionStore } from '../../src/index.js'
import { LaggingClock } from '../support/agent-harness/lagging-clock.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const stores = [
  ['synchronously', (near: SessionStore) => near],
  ['asynchronously', (near: SessionStore) => distant(near)],
] as const

async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
  if (!holds()) throw new Error('It did not come to pass.')
}

/** A process in the first of four payments, run one or two at a time, with its store queries. */
async function paying(reached: (near: SessionStore) => SessionStore, concurrency: number) {
  const clock = new LaggingClock(1_000_000)
  const near = memoryStore({ now: () => clock.now() })
  const queries: string[] = []
  let isAway = false
  const renew: typeof near.renew = (lease, ttlMs) => {
    queries.push('renew')
    if (isAway) throw new Error('The store is away.')
    return near.renew(lease, ttlMs)
  }
  const store = reached({ ...near, renew })
  const [begun, ends] = [[] as string[], [] as (() => void)[]]
  const pay = tool('pay', ({ text }) => {
    begun.push(String(text))
    return new Promise<string>((resolve) => ends.push(() => resolve('paid')))
  })
  const enter = () => {
    const model = new ManualModel()
    return { model, agent: createAgent({ model, clock, store, tools: [pay], toolCalls: { concurrency } }) }
  }
  const first = enter()
  const run = first.agent.run('Pay.', { session: 's' })
  await until(() => first.model.pending)
  const toolCalls = ['1', '2', '3', '4'].map((text) => call(text, 'pay', { text }))
  first.model.pending?.answer({ finishReason: 'tool_calls', toolCalls })
  await until(() => begun.length === concurrency)
  return { clock, run, begun, ends, queries, enter, first, goAway: () => void (isAway = true) }
}

describe.each(sampledKinds(stores))('with a store that answers %s', (_, reached) => {
  test.each([1, 2])(
    'a process that has slept starts no call of a run that another process has taken over, %d at a time',
    async (n) => {
      const { clock, run, begun, ends, enter } = await paying(reached, n)
      // The lease and the process both stall for this long.
      clock.lag(31_000)
      const other = await enter().agent.resume('s')
      await until(() => other.state === 'RUNNING')
      for (const end of ends.splice(0)) end()
      expect(await run.result).toMatchObject({ state: 'ERROR', reason: 'store_error', resumable: true })
      expect(begun).toHaveLength(n)
    },
  )

  test('a process whose expired lease has no successor acquires it again and continues', async () => {
    const { clock, run, begun, ends, queries, first } = await paying(reached, 1)
    clock.lag(31_000)
    for (let i = 1; i <= 4; i += 1) {
      await until(() => ends.length > 0)
      ends.shift()?.()
    }
    await until(() => first.model.pending)
    first.model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(begun).toEqual(['1', '2', '3', '4'])
    expect(queries).toEqual(['renew'])
  })

  test('a fresh lease causes no store call', async () => {
    const { run, ends, queries, first } = await paying(reached, 1)
    for (let i = 1; i <= 4; i += 1) {
      await until(() => ends.length > 0)
      ends.shift()?.()
    }
    await until(() => first.model.pending)
    first.model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(queries).toEqual([])
  })

  test('a store that is away while the lease lasts does not delay a call, and is called once', async () => {
    const { clock, begun, ends, queries, goAway } = await paying(reached, 1)
    clock.lag(20_000)
    goAway()
    ends.shift()?.()
    await until(() => begun.length === 2)
    expect(begun).toEqual(['1', '2'])
    expect(queries.length).toBeLessThanOrEqual(2)
  })
})
