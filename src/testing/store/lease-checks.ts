import * as t from './store-scene.js'

export const leaseChecks: t.StoreChecks = {
  'a session has one lease owner, whose name is reported to others': async ({ store }) => {
    await t.hold(store, 's', { holder: 'run 4f2a' })
    const error = await t.busy('a second acquire', 'run 4f2a', () => t.hold(store))
    t.same('the subject of session_busy', error.subject, 's')
    await t.hold(store, 'another')
  },
  'a released session can be acquired, and release is idempotent': async ({ store }) => {
    const first = await t.hold(store)
    await store.release(first)
    await store.release(first)
    const second = await t.hold(store)
    t.ok(second.token !== first.token, 'each lease needs a unique token')
    await store.release(first)
    await t.held('acquiring a leased session after an older lease was released', () => t.hold(store))
  },
  'a lease has an expiry time, after which others can acquire the session': async ({ store, time }) => {
    const until = time.now() + time.ms(100)
    const first = await t.hold(store, 's', { holder: 'first', ttlMs: time.ms(100) })
    time.same('expiresAt', first.expiresAt, until)
    await time.passAlmost(100)
    await t.held('acquire before another lease has expired', () => t.hold(store))
    await time.pass(time.isGiven ? 1 : 100)
    await store.acquire('s', { holder: 'second', ttlMs: 0 })
    await time.pass(0)
    await store.acquire('s', { holder: 'third', ttlMs: 1 })
  },
  'an expired lease cannot write, but can be renewed until another process acquires the session': async (
    scene,
  ) => {
    const { store, time } = scene
    const lease = await t.hold(store, 's', { holder: 'first', ttlMs: time.ms(100) })
    await t.add(store, lease, 1)
    await time.pass(100)
    await t.lost('an append with an expired lease', () => t.add(store, lease, 2))
    const until = time.now() + time.ms(100)
    const renewed = await store.renew(lease, time.ms(100))
    t.same('the renewed lease', renewed, { ...lease, expiresAt: renewed.expiresAt })
    time.same('expiresAt', renewed.expiresAt, until)
    await t.add(store, lease, 2)
    await time.passAlmost(100)
    await t.add(store, renewed, 3)
    t.same('the log', await store.read('s'), t.records(1, 3))
  },
  'a lease taken over by another process can neither write, be renewed nor release the session': async (
    scene,
  ) => {
    const { store, time } = scene
    const stale = await t.hold(store, 's', { holder: 'stale', ttlMs: time.ms(1) })
    await time.pass(1)
    const lease = await t.hold(store)
    await t.lost('an append with a lease taken over by another process', () => t.add(store, stale, 1))
    await t.lost('renewing a lease that another process has taken over', () => store.renew(stale, 1000))
    await store.release(stale)
    await t.held('acquiring a leased session after an expired lease was released', () => t.hold(store))
    await t.add(store, lease, 1)
    t.same('the log', await store.read('s'), [t.record(1)])
  },
  'a released lease cannot be used': async ({ store }) => {
    const lease = await t.hold(store)
    await t.add(store, lease, 1)
    await store.release(lease)
    await t.lost('an append with a released lease', () => t.add(store, lease, 2))
    await t.lost('renewing a released lease', () => store.renew(lease, 1000))
  },
  'an append can release its lease and reports it; a refused append keeps the lease': async ({ store }) => {
    const lease = await t.hold(store)
    await t.refused('an append that does not follow the head and releases the lease', 'out_of_order', () =>
      store.append(lease, [t.record(2)], undefined, { release: true }),
    )
    const receipt = await store.append(lease, [t.record(1)], undefined, { release: true })
    const holder = (await store.get('s'))?.holder
    if (!receipt?.released) {
      t.ok(holder != null, 'append released the session without returning `released`')
      await t.add(store, lease, 2)
      return
    }
    t.same('the owner of a session released by an append', holder, null)
    await t.lost('an append after the release', () => t.add(store, lease, 2))
    const next = await t.hold(store)
    await store.release(lease)
    await t.add(store, next, 2)
    t.same('the log', await store.read('s'), t.records(1, 2))
  },
  'a lease is valid for one session only': async ({ store }) => {
    const lease = await t.hold(store, 'a')
    await t.hold(store, 'b')
    for (const [sessionId, whose] of [
      ['b', 'a session leased by another writer'],
      ['c', 'a session without a lease'],
    ] as const) {
      await t.lost(`an append to ${whose}`, () => t.add(store, { ...lease, sessionId }, 1))
    }
  },
  'a lease duration must be a finite number of at least 0': async ({ store }) => {
    const lease = await t.hold(store, 'held')
    for (const ttlMs of [Number.NaN, -1, Infinity]) {
      await t.refused(`acquire for ${ttlMs} ms`, 'invalid_lease', () =>
        store.acquire('s', { holder: 'x', ttlMs }),
      )
      await t.refused(`renew for ${ttlMs} ms`, 'invalid_lease', () => store.renew(lease, ttlMs))
    }
    await t.hold(store)
    await t.add(store, lease, 1)
  },
  'session ids are validated': async ({ store }) => {
    for (const id of ['', '../x', 'a b', '.hidden', 'x'.repeat(201)]) {
      await t.refused(`a session with the id ${t.show(id)}`, 'invalid_session', () => t.hold(store, id))
    }
    const { sessionId } = await t.hold(store, 'Team:a_b@x.y-1')
    t.same("the lease's session", sessionId, 'Team:a_b@x.y-1')
  },
}

export const renewAllChecks: t.StoreChecks = {
  'renewAll renews several leases and omits lost ones': async ({ store, time }) => {
    const leases = []
    for (const id of ['c', 'a', 'b'])
      leases.push(await t.hold(store, id, { holder: 'first', ttlMs: time.ms(100) }))
    const [c, a, b] = leases
    if (!a || !b || !c) return
    await store.release(b)
    await time.pass(60)
    const until = time.now() + time.ms(100)
    const renewed = (await store.renewAll?.(leases, time.ms(100))) ?? []
    const wanted = [c, a].map((lease, n) => ({ ...lease, expiresAt: renewed[n]?.expiresAt }))
    t.same('the result of renewAll for three leases, the last of them released', renewed, wanted)
    for (const { sessionId, expiresAt } of renewed)
      time.same(`the expiry of ${sessionId}'s lease`, expiresAt, until)
    await time.pass(60)
    await t.add(store, c, 1)
    await t.held('acquiring a renewed session', () => t.hold(store, 'a'))
    t.same('the result of renewAll without leases', await store.renewAll?.([], time.ms(100)), [])
  },
}
