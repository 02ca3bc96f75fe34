import fc from 'fast-check'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { StoreError } from '../../src/core/sessions/store/store-error.js'
import type { Lease, LogRecord, SessionStore } from '../../src/core/sessions/store/store.js'
import { asked, record, records, refusal, type Subject } from './support.js'

/** Many writers. */
export function describeCrowd(subject: Subject): void {
  test('two hundred sessions written at once lose nothing and keep their order', async () => {
    const { store } = subject
    const ids = Array.from({ length: 200 }, (_, index) => `session-${index}`)
    await Promise.all(
      ids.map(async (id) => {
        const lease = await store.acquire(id, asked)
        for (let seq = 1; seq <= 10; seq += 2) {
          await Promise.resolve()
          await store.append(lease, [record(seq, `"${id}"`), record(seq + 1, `"${id}"`)])
        }
      }),
    )
    for (const id of ids) {
      expect(await store.read(id)).toEqual(records(1, 10).map((each) => ({ ...each, data: `"${id}"` })))
    }
    expect(await store.list()).toHaveLength(200)
  })

  test('of twenty who want a session at once, one gets it', async () => {
    const { store } = subject
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) => store.acquire('s', { holder: `${index}`, ttlMs: 1000 })),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'session_busy' })
    }
  })

  test('of appends of one writer that overlap, each is kept whole or refused', async () => {
    const { store } = subject
    const lease = await store.acquire('s', asked)
    await Promise.allSettled(
      Array.from({ length: 10 }, async (_, index) =>
        store.append(lease, [record(1, `${index}`), record(2, `${index}`)]),
      ),
    )
    const log = await store.read('s')
    expect(log.map(({ seq }) => seq)).toEqual([1, 2])
    expect(log[0]?.data).toBe(log[1]?.data)
  })

  test('does what the store in memory does, whatever is asked of it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 1, maxLength: 40 }),
        fc.uuid(),
        async (operations, id) => {
          const start = subject.time
          const reference = await play(operations, memoryStore({ now: () => subject.time }), id, subject)
          subject.time = start
          expect(await play(operations, subject.store, id, subject)).toEqual(reference)
        },
      ),
      { numRuns: 60 },
    )
  })
}

/** The same, where several connections share a place. */
export function describeSharing(subject: Subject): void {
  test('another connection sees what is written, and is refused while the first one writes', async () => {
    const other = subject.place.open(() => subject.time)
    const lease = await subject.store.acquire('s', { holder: 'run 4f2a', ttlMs: 1000 })
    await subject.store.append(lease, [record(1)])
    expect(await other.read('s')).toEqual([record(1)])
    expect((await refusal('session_busy', () => other.acquire('s', asked))).message).toContain('run 4f2a')
    await refusal('session_busy', () => other.delete('s'))

    subject.time += 1000
    const taken = await other.acquire('s', asked)
    await refusal('lease_lost', () => subject.store.append(lease, [record(2)]))
    await refusal('lease_lost', () => subject.store.renew(lease, 1000))
    await other.append(taken, [record(2)])
    expect(await subject.store.read('s')).toEqual(records(1, 2))
    await other.close()
  })

  test('a place that many open for the first time at once is good for all', async () => {
    const place = subject.place
    const stores = Array.from({ length: 8 }, () => place.open())
    await Promise.all(
      stores.map(async (store, index) => {
        const lease = await store.acquire(`s${index}`, asked)
        await store.append(lease, [record(1)])
      }),
    )
    expect(await subject.store.list()).toHaveLength(8)
    for (const store of stores) await store.close()
  })

  test('a closed store says so, and closing it again is nothing', async () => {
    const other = subject.place.open()
    const lease = await other.acquire('s', asked)
    await other.close()
    await other.close()
    await refusal('store_unavailable', () => other.append(lease, [record(1)]))
    await refusal('store_unavailable', () => other.read('s'))
    await refusal('store_unavailable', () => other.list())
    expect(await subject.store.read('s')).toEqual([])
  })
}

const writer = fc.nat({ max: 2 })
const operation = fc.oneof(
  fc.record({ type: fc.constant('acquire' as const), writer, ttlMs: fc.nat({ max: 20 }) }),
  fc.record({ type: fc.constant('renew' as const), writer, ttlMs: fc.nat({ max: 20 }) }),
  fc.record({ type: fc.constant('release' as const), writer }),
  fc.record({
    type: fc.constant('append' as const),
    writer,
    gap: fc.constantFrom(0, 0, 0, 0, 1, -1),
    types: fc.array(fc.constantFrom('event' as const, 'event' as const, 'snapshot' as const), {
      maxLength: 3,
    }),
  }),
  fc.record({
    type: fc.constant('read' as const),
    from: fc.option(fc.nat({ max: 12 })),
    to: fc.nat({ max: 12 }),
  }),
  fc.record({ type: fc.constant('delete' as const) }),
  fc.record({ type: fc.constant('wait' as const), ms: fc.nat({ max: 15 }) }),
)
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never

/** What each operation on a session gives: a value without tokens, or the code of an error. */
async function play(
  operations: readonly Operation[],
  store: SessionStore,
  id: string,
  subject: Subject,
): Promise<unknown[]> {
  const leases = new Map<number, Lease>()
  const outcomes: unknown[] = []
  for (const step of operations) {
    try {
      outcomes.push(await perform(step, store, id, subject, leases))
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      outcomes.push(error.code)
    }
  }
  outcomes.push(await store.read(id))
  return outcomes
}

async function perform(
  step: Operation,
  store: SessionStore,
  id: string,
  subject: Subject,
  leases: Map<number, Lease>,
): Promise<unknown> {
  if (step.type === 'wait') return void (subject.time += step.ms)
  if (step.type === 'delete') return store.delete(id)
  if (step.type === 'read') return store.read(id, { from: step.from ?? 'snapshot', to: step.to })
  if (step.type === 'acquire') {
    const lease = await store.acquire(id, { holder: `writer ${step.writer}`, ttlMs: step.ttlMs })
    leases.set(step.writer, lease)
    return lease.expiresAt
  }
  const lease = leases.get(step.writer)
  if (!lease) return 'no lease'
  if (step.type === 'renew') return (await store.renew(lease, step.ttlMs)).expiresAt
  if (step.type === 'release') return store.release(lease)
  const next = ((await store.read(id)).at(-1)?.seq ?? 0) + 1 + step.gap
  const added: LogRecord[] = step.types.map((type, index) => record(next + index, `${step.writer}`, type))
  return store.append(lease, added)
}
