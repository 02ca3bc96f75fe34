import { expectTrue, expectSame, formatValue } from '../check-assertions.js'
import {
  add,
  hold,
  expectHeld,
  type StoreChecks,
  createRecord,
  createRecords,
  expectBusy,
  expectLost,
  expectRefusal,
} from './store-scene.js'

const createShortLease = (hundredths: number, ms: (hundredths: number) => number, holder = 'first') => ({
  holder,
  ttlMs: ms(hundredths),
})

export const leaseChecks: StoreChecks = {
  'a session has one lease owner, whose name is reported to others': async ({ store }) => {
    await store.acquire('s', { holder: 'run 4f2a', ttlMs: 60_000 })
    const error = await expectBusy('a second acquire', 'run 4f2a', () => hold(store))
    expectSame('the subject of session_busy', error.subject, 's')
    await hold(store, 'another')
  },
  'a released session can be acquired, and release is idempotent': async ({ store }) => {
    const first = await hold(store)
    await store.release(first)
    await store.release(first)
    const second = await hold(store)
    expectTrue(second.token !== first.token, 'each lease needs a unique token')
    await store.release(first)
    await expectHeld('acquiring a leased session after an older lease was released', () => hold(store))
  },
  'a lease has an expiry time, after which others can acquire the session': async ({ store, time }) => {
    const until = time.now() + time.ms(100)
    const first = await store.acquire('s', createShortLease(100, time.ms))
    time.same('expiresAt', first.expiresAt, until)
    await time.passAlmost(100)
    await expectHeld('acquire before another lease has expired', () => hold(store))
    await time.pass(time.isGiven ? 1 : 100)
    await store.acquire('s', { holder: 'second', ttlMs: 0 })
    await time.pass(0)
    await store.acquire('s', { holder: 'third', ttlMs: 1 })
  },
  'an expired lease cannot write, but can be renewed until another process acquires the session': async (
    scene,
  ) => {
    const { store, time } = scene
    const lease = await store.acquire('s', createShortLease(100, time.ms))
    await add(store, lease, 1)
    await time.pass(100)
    await expectLost('an append with an expired lease', () => add(store, lease, 2))
    const until = time.now() + time.ms(100)
    const renewed = await store.renew(lease, time.ms(100))
    expectSame('the renewed lease', renewed, { ...lease, expiresAt: renewed.expiresAt })
    time.same('expiresAt', renewed.expiresAt, until)
    await add(store, lease, 2)
    await time.passAlmost(100)
    await add(store, renewed, 3)
    expectSame('the log', await store.read('s'), createRecords(1, 3))
  },
  'a lease taken over by another process can neither write, be renewed nor release the session': async (
    scene,
  ) => {
    const { store, time } = scene
    const stale = await store.acquire('s', createShortLease(1, time.ms, 'stale'))
    await time.pass(1)
    const lease = await hold(store)
    await expectLost('an append with a lease taken over by another process', () => add(store, stale, 1))
    await expectLost('renewing a lease that another process has taken over', () => store.renew(stale, 1000))
    await store.release(stale)
    await expectHeld('acquiring a leased session after an expired lease was released', () => hold(store))
    await add(store, lease, 1)
    expectSame('the log', await store.read('s'), [createRecord(1)])
  },
  'a released lease cannot be used': async ({ store }) => {
    const lease = await hold(store)
    await add(store, lease, 1)
    await store.release(lease)
    await expectLost('an append with a released lease', () => add(store, lease, 2))
    await expectLost('renewing a released lease', () => store.renew(lease, 1000))
  },
  'an append can release its lease and reports it; a refused append keeps the lease': async ({ store }) => {
    const lease = await hold(store)
    await expectRefusal(
      'an append that does not follow the head and releases the lease',
      'out_of_order',
      () => store.append(lease, [createRecord(2)], undefined, { release: true }),
    )
    const receipt = await store.append(lease, [createRecord(1)], undefined, { release: true })
    const holder = (await store.get('s'))?.holder
    if (!receipt?.released) {
      expectTrue(holder != null, 'append released the session without returning `released`')
      await add(store, lease, 2)
      return
    }
    expectSame('the owner of a session released by an append', holder, null)
    await expectLost('an append after the release', () => add(store, lease, 2))
    const next = await hold(store)
    await store.release(lease)
    await add(store, next, 2)
    expectSame('the log', await store.read('s'), createRecords(1, 2))
  },
  'a lease is valid for one session only': async ({ store }) => {
    const lease = await hold(store, 'a')
    await hold(store, 'b')
    for (const [sessionId, whose] of [
      ['b', 'a session leased by another writer'],
      ['c', 'a session without a lease'],
    ] as const) {
      await expectLost(`an append to ${whose}`, () => add(store, { ...lease, sessionId }, 1))
    }
  },
  'a lease duration must be a finite number of at least 0': async ({ store }) => {
    const lease = await hold(store, 'held')
    for (const ttlMs of [Number.NaN, -1, Infinity]) {
      await expectRefusal(`acquire for ${ttlMs} ms`, 'invalid_lease', () =>
        store.acquire('s', { holder: 'x', ttlMs }),
      )
      await expectRefusal(`renew for ${ttlMs} ms`, 'invalid_lease', () => store.renew(lease, ttlMs))
    }
    await hold(store)
    await add(store, lease, 1)
  },
  'session ids are validated': async ({ store }) => {
    for (const id of ['', '../x', 'a b', '.hidden', 'x'.repeat(201)]) {
      await expectRefusal(`a session with the id ${formatValue(id)}`, 'invalid_session', () =>
        hold(store, id),
      )
    }
    const { sessionId } = await hold(store, 'Team:a_b@x.y-1')
    expectSame("the lease's session", sessionId, 'Team:a_b@x.y-1')
  },
}

export const renewAllChecks: StoreChecks = {
  'renewAll renews several leases and omits lost ones': async ({ store, time }) => {
    const leases = []
    for (const id of ['c', 'a', 'b']) leases.push(await store.acquire(id, createShortLease(100, time.ms)))
    const [c, a, b] = leases
    if (!a || !b || !c) return
    await store.release(b)
    await time.pass(60)
    const until = time.now() + time.ms(100)
    const renewed = (await store.renewAll?.(leases, time.ms(100))) ?? []
    const wanted = [c, a].map((lease, n) => ({ ...lease, expiresAt: renewed[n]?.expiresAt }))
    expectSame('the result of renewAll for three leases, the last of them released', renewed, wanted)
    for (const { sessionId, expiresAt } of renewed)
      time.same(`the expiry of ${sessionId}'s lease`, expiresAt, until)
    await time.pass(60)
    await add(store, c, 1)
    await expectHeld('acquiring a renewed session', () => hold(store, 'a'))
    expectSame('the result of renewAll without leases', await store.renewAll?.([], time.ms(100)), [])
  },
}
