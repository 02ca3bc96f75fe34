import { expectTrue, expectSame, formatValue } from '../check-assertions.js'
import {
  leaseRequest,
  type StoreCheckSpec,
  createRecord,
  createRecords,
  expectRefusal,
} from './store-scene.js'

const createShortLease = (hundredths: number, ms: (hundredths: number) => number, holder = 'first') => ({
  holder,
  ttlMs: ms(hundredths),
})

/** What every store does with the right to write. */
export const leaseChecks: readonly StoreCheckSpec[] = [
  {
    name: 'a lease is renewed with many others, and those that are lost are told apart',
    needs: 'renewAll',
    async run({ store, time }) {
      const leases = []
      for (const id of ['c', 'a', 'b']) leases.push(await store.acquire(id, createShortLease(100, time.ms)))
      const [c, a, b] = leases
      if (!a || !b || !c) return
      await store.release(b)
      await time.pass(60)
      const until = time.now() + time.ms(100)
      const renewed = (await store.renewAll?.(leases, time.ms(100))) ?? []
      const wanted = [c, a].map((lease, n) => ({ ...lease, expiresAt: renewed[n]?.expiresAt }))
      expectSame('what renewAll gives back of three, the last of them released', renewed, wanted)
      for (const { sessionId, expiresAt } of renewed)
        time.same(`when the lease of ${sessionId} runs out`, expiresAt, until)
      await time.pass(60)
      await store.append(c, [createRecord(1)])
      await expectRefusal('to acquire what was renewed', 'session_busy', () =>
        store.acquire('a', leaseRequest),
      )
      expectSame('what renewAll gives back of none', await store.renewAll?.([], time.ms(100)), [])
    },
  },
  {
    name: 'a lease is given to one writer, and others are told who that is',
    async run({ store }) {
      await store.acquire('s', { holder: 'run 4f2a', ttlMs: 60_000 })
      const error = await expectRefusal('a second acquire', 'session_busy', () =>
        store.acquire('s', leaseRequest),
      )
      expectTrue(
        error.message.includes('run 4f2a'),
        `the message of session_busy should name the holder, 'run 4f2a', but is ${formatValue(error.message)}`,
      )
      expectSame('the subject of session_busy', error.subject, 's')
      await store.acquire('another', leaseRequest)
    },
  },
  {
    name: 'a lease is free for the next when released, and release can be said twice',
    async run({ store }) {
      const first = await store.acquire('s', leaseRequest)
      await store.release(first)
      await store.release(first)
      const second = await store.acquire('s', leaseRequest)
      expectTrue(second.token !== first.token, 'each lease needs a token of its own')
      await store.release(first)
      await expectRefusal('acquire, after the release of an older lease', 'session_busy', () =>
        store.acquire('s', leaseRequest),
      )
    },
  },
  {
    name: 'a lease says until when it lasts, and can be taken by another from then on',
    async run({ store, time }) {
      const until = time.now() + time.ms(100)
      const first = await store.acquire('s', createShortLease(100, time.ms))
      time.same('expiresAt', first.expiresAt, until)
      await time.passAlmost(100)
      await expectRefusal('acquire, before the lease of another has run out', 'session_busy', () =>
        store.acquire('s', leaseRequest),
      )
      await time.pass(time.isGiven ? 1 : 100)
      await store.acquire('s', { holder: 'second', ttlMs: 0 })
      await time.pass(0)
      await store.acquire('s', { holder: 'third', ttlMs: 1 })
    },
  },
  {
    name: 'a lease that has run out cannot write, but can be renewed while no other process has taken the session',
    async run({ store, time }) {
      const lease = await store.acquire('s', createShortLease(100, time.ms))
      await store.append(lease, [createRecord(1)])
      await time.pass(100)
      await expectRefusal('an append with a lease that has run out', 'lease_lost', () =>
        store.append(lease, [createRecord(2)]),
      )
      const until = time.now() + time.ms(100)
      const renewed = await store.renew(lease, time.ms(100))
      expectSame('the lease, renewed', renewed, { ...lease, expiresAt: renewed.expiresAt })
      time.same('expiresAt', renewed.expiresAt, until)
      await store.append(lease, [createRecord(2)])
      await time.passAlmost(100)
      await store.append(renewed, [createRecord(3)])
      expectSame('the log', await store.read('s'), createRecords(1, 3))
    },
  },
  {
    name: 'a lease that another process has taken over can neither write nor be renewed, nor free the session',
    async run({ store, time }) {
      const stale = await store.acquire('s', createShortLease(1, time.ms, 'stale'))
      await time.pass(1)
      const lease = await store.acquire('s', leaseRequest)
      await expectRefusal('an append with a lease that another has taken over', 'lease_lost', () =>
        store.append(stale, [createRecord(1)]),
      )
      await expectRefusal('the renewal of a lease that another has taken over', 'lease_lost', () =>
        store.renew(stale, 1000),
      )
      await store.release(stale)
      await expectRefusal('acquire, after the release of the lease before', 'session_busy', () =>
        store.acquire('s', leaseRequest),
      )
      await store.append(lease, [createRecord(1)])
      expectSame('the log', await store.read('s'), [createRecord(1)])
    },
  },
  {
    name: 'a lease is lost with its release',
    async run({ store }) {
      const lease = await store.acquire('s', leaseRequest)
      await store.append(lease, [createRecord(1)])
      await store.release(lease)
      await expectRefusal('an append with a lease that was released', 'lease_lost', () =>
        store.append(lease, [createRecord(2)]),
      )
      await expectRefusal('the renewal of a lease that was released', 'lease_lost', () =>
        store.renew(lease, 1000),
      )
    },
  },
  {
    name: 'a lease that an append gives back, and says so, is gone; one of an append that is refused is not',
    async run({ store }) {
      const lease = await store.acquire('s', leaseRequest)
      await expectRefusal('an append that does not follow the head, and is the last', 'out_of_order', () =>
        store.append(lease, [createRecord(2)], undefined, { release: true }),
      )
      const told = await store.append(lease, [createRecord(1)], undefined, { release: true })
      const holder = (await store.get('s'))?.holder
      if (!told?.released) {
        expectTrue(
          holder != null,
          'append gives the session free when it is asked to, and does not say `released`',
        )
        await store.append(lease, [createRecord(2)])
        return
      }
      expectSame('who holds a session that an append gave free', holder, null)
      await expectRefusal('an append after the last', 'lease_lost', () =>
        store.append(lease, [createRecord(2)]),
      )
      const next = await store.acquire('s', leaseRequest)
      await store.release(lease)
      await store.append(next, [createRecord(2)])
      expectSame('the log', await store.read('s'), createRecords(1, 2))
    },
  },
  {
    name: 'a lease of one session does not open another',
    async run({ store }) {
      const lease = await store.acquire('a', leaseRequest)
      await store.acquire('b', leaseRequest)
      for (const [sessionId, whose] of [
        ['b', 'a session that another holds'],
        ['c', 'a session that no process holds'],
      ] as const) {
        await expectRefusal(`an append to ${whose}`, 'lease_lost', () =>
          store.append({ ...lease, sessionId }, [createRecord(1)]),
        )
      }
    },
  },
  {
    name: 'a lease refuses to last for what is no number of milliseconds from 0 up',
    async run({ store }) {
      const lease = await store.acquire('held', leaseRequest)
      for (const ttlMs of [Number.NaN, -1, Infinity]) {
        await expectRefusal(`acquire for ${ttlMs} ms`, 'invalid_lease', () =>
          store.acquire('s', { holder: 'x', ttlMs }),
        )
        await expectRefusal(`renew for ${ttlMs} ms`, 'invalid_lease', () => store.renew(lease, ttlMs))
      }
      await store.acquire('s', leaseRequest)
      await store.append(lease, [createRecord(1)])
    },
  },
  {
    name: 'a lease is for ids that are allowed',
    async run({ store }) {
      for (const id of ['', '../x', 'a b', '.hidden', 'x'.repeat(201)]) {
        await expectRefusal(`a session of the id ${formatValue(id)}`, 'invalid_session', () =>
          store.acquire(id, leaseRequest),
        )
      }
      const { sessionId } = await store.acquire('Team:a_b@x.y-1', leaseRequest)
      expectSame('the session of the lease', sessionId, 'Team:a_b@x.y-1')
    },
  },
]
