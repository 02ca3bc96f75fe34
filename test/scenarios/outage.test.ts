import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { createAgent, memoryStore, type Run, type RunResult, StoreError } from '../../src/index.js'
import type { SessionStore, SyncSessionStore } from '../../src/stores/index.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { sampled } from '../support/extent.js'

type Fate = 'done' | 'refused' | 'unanswered'

const away = () => new StoreError('store_unavailable', 'The server is away.', 's')

/** A store behind a network that can fail before the request arrives or before its response returns. */
function breaking(near: SessionStore, fateOf: (method: string) => Fate): SessionStore {
  const far = distant(near)
  const broken = ['acquire', 'renew', 'append', 'release'].map((name) => [
    name,
    async (...args: unknown[]) => {
      const fate = fateOf(name)
      if (fate === 'refused') throw away()
      const ask = far[name as 'append'] as (...args: unknown[]) => Promise<unknown>
      const answer = await ask(...args)
      if (fate === 'unanswered') throw away()
      return answer
    },
  ])
  return { ...far, ...(Object.fromEntries(broken) as object) }
}

/** A separate process. */
function program(store: SessionStore, clock: SimulatedClock, work: () => unknown = () => 'seen') {
  const model = new ManualModel()
  const look = tool('look', async () => String(await work()), { readOnly: true })
  return { model, agent: createAgent({ model, store, clock, tools: [look] }) }
}

async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
}

/** Runs to its end with a model that repeats this answer. */
async function answered(
  model: ManualModel,
  run: Run,
  responses: Parameters<NonNullable<ManualModel['pending']>['answer']>[0][],
): Promise<RunResult> {
  const progress = { isOver: false }
  void run.result.then(() => (progress.isOver = true))
  for (const response of responses) {
    await until(() => model.pending ?? progress.isOver)
    model.pending?.answer(response)
  }
  return run.result
}

/** Advances the clock and runs due timers. */
async function pass(clock: SimulatedClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.increment(Math.min(250, left))
    for (let i = 0; i < 4; i += 1) await settled()
  }
}

function world(): { clock: SimulatedClock; near: SyncSessionStore } {
  const clock = new SimulatedClock()
  return { clock, near: memoryStore({ now: () => clock.now() }) }
}

describe('a store with an outage', () => {
  test('releases the sessions of ended runs as soon as it is back', async () => {
    const { clock, near } = world()
    let isAway = false
    const requests: string[] = []
    const store = breaking(near, (method) => {
      if (isAway) requests.push(method)
      return isAway ? 'refused' : 'done'
    })
    const sessions = ['a', 'b', 'c', 'd']
    const programs = sessions.map((session) => {
      const { model, agent } = program(store, clock)
      return { session, model, run: agent.run('Go.', { session }) }
    })
    await until(() => programs.every(({ model }) => model.pending))
    isAway = true
    for (const { model } of programs) model.pending?.answer({ toolCalls: [call('a', 'look')] })
    for (const { run } of programs)
      expect(await run.result).toMatchObject({ reason: 'store_error', error: { code: 'store_unavailable' } })
    requests.length = 0
    await pass(clock, 8000)
    // During the outage, one request probes the store and the others wait.
    expect(requests.length).toBeGreaterThan(1)
    expect(requests.length).toBeLessThan(8)
    expect(new Set(requests)).toEqual(new Set(['release']))
    expect(near.get('a')?.holder).not.toBeNull()

    isAway = false
    await pass(clock, 4000)
    expect(sessions.map((session) => near.get(session)?.holder)).toEqual([null, null, null, null])
    // Long before their leases expire.
    expect(clock.now()).toBeLessThan(30_000)
    const other = program(distant(near), clock)
    const run = await other.agent.resume('a')
    await until(() => other.model.pending)
    other.model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  test('leaves a session to the process that took it after the lease expired', async () => {
    const { clock, near } = world()
    let isAway = false
    const first = program(
      breaking(near, () => (isAway ? 'refused' : 'done')),
      clock,
    )
    const run = first.agent.run('Go.', { session: 's' })
    await until(() => first.model.pending)
    isAway = true
    first.model.pending?.answer({ toolCalls: [call('a', 'look')] })
    expect(await run.result).toMatchObject({ reason: 'store_error' })
    await pass(clock, 29_000)
    clock.increment(2000)
    const other = program(distant(near), clock)
    const resumed = await other.agent.resume('s')
    await until(() => other.model.pending)
    const holder = near.get('s')?.holder
    expect(holder).not.toBeNull()
    isAway = false
    await pass(clock, 8000)
    expect(near.get('s')?.holder).toBe(holder)
    other.model.pending?.answer({ text: 'Done.' })
    expect(await resumed.result).toMatchObject({ state: 'COMPLETED' })
  })

  test('writes nothing twice, for any lost requests and replies, and releases the session soon after', async () => {
    const fate = fc.constantFrom<Fate>('done', 'done', 'refused', 'unanswered')
    await fc.assert(
      fc.asyncProperty(fc.array(fate, { maxLength: 10 }), async (fates) => {
        const { clock, near } = world()
        const left = [...fates]
        let worked = 0
        const first = program(
          // Only the store itself could undo a write whose response was lost.
          breaking(near, (method) => (method === 'acquire' ? 'done' : (left.shift() ?? 'done'))),
          clock,
          () => (worked += 1),
        )
        const run = first.agent.run('Go.', { session: 's' })
        const { state } = await answered(first.model, run, [
          { toolCalls: [call('a', 'look')] },
          { text: 'Done.' },
        ])
        expect(['COMPLETED', 'ERROR']).toContain(state)
        left.length = 0
        await pass(clock, 5000)
        expect(near.get('s')?.holder ?? null).toBeNull()
        const records = near.read('s')
        expect(records.map(({ seq }) => seq)).toEqual(records.map((_, n) => n + 1))
        expect(worked).toBeLessThanOrEqual(1)
        if (records.length === 0) return
        const other = program(distant(near), clock)
        const again = await other.agent.resume('s')
        const result = await answered(other.model, again, [{ text: 'Done.' }])
        expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      }),
      { numRuns: sampled(40) },
    )
  })
})
