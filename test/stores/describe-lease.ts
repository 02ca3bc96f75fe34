import { asked, failure, record, records, refusal, type Subject } from './support.js'

export function describeLease(subject: Subject): void {
  describe('a lease', () => {
    test('is renewed with many others, and those that are lost are told apart', async () => {
      const { store } = subject
      if (!store.renewAll) return
      const leases = []
      for (const id of ['c', 'a', 'b']) leases.push(await store.acquire(id, { holder: 'me', ttlMs: 100 }))
      const [c, , b] = leases
      if (!b || !c) throw new Error('no leases')
      await store.release(b)
      subject.time += 60
      expect(await store.renewAll(leases, 100)).toEqual(
        leases.filter((lease) => lease !== b).map((lease) => ({ ...lease, expiresAt: subject.time + 100 })),
      )
      subject.time += 60
      await store.append(c, [record(1)])
      await refusal('session_busy', () => store.acquire('a', asked))
      expect(await store.renewAll([], 100)).toEqual([])
    })

    test('is given to one writer, and others are told who that is', async () => {
      await subject.store.acquire('s', { holder: 'run 4f2a', ttlMs: 1000 })
      const error = await refusal('session_busy', () => subject.store.acquire('s', asked))
      expect(error.message).toContain('run 4f2a')
      expect(error.subject).toBe('s')
      await subject.store.acquire('another', asked)
    })

    test('is free for the next when released, and release can be said twice', async () => {
      const first = await subject.store.acquire('s', asked)
      await subject.store.release(first)
      await subject.store.release(first)
      const second = await subject.store.acquire('s', asked)
      expect(second.token).not.toBe(first.token)
      await subject.store.release(first)
      await refusal('session_busy', () => subject.store.acquire('s', asked))
    })

    test('says until when it lasts, and can be taken by another from then on', async () => {
      const first = await subject.store.acquire('s', { holder: 'first', ttlMs: 100 })
      expect(first.expiresAt).toBe(subject.time + 100)
      subject.time += 99
      await refusal('session_busy', () => subject.store.acquire('s', asked))
      subject.time += 1
      await subject.store.acquire('s', { holder: 'second', ttlMs: 0 })
      await subject.store.acquire('s', { holder: 'third', ttlMs: 1 })
    })

    test('that has run out cannot write, but can be renewed while nobody has taken the session', async () => {
      const lease = await subject.store.acquire('s', { holder: 'first', ttlMs: 100 })
      await subject.store.append(lease, [record(1)])
      subject.time += 100
      await refusal('lease_lost', () => subject.store.append(lease, [record(2)]))
      const renewed = await subject.store.renew(lease, 100)
      expect(renewed).toEqual({ ...lease, expiresAt: subject.time + 100 })
      await subject.store.append(lease, [record(2)])
      subject.time += 99
      await subject.store.append(renewed, [record(3)])
      expect(await subject.store.read('s')).toEqual(records(1, 3))
    })

    test('that somebody else has taken over can neither write nor be renewed, nor free the session', async () => {
      const stale = await subject.store.acquire('s', { holder: 'stale', ttlMs: 1 })
      subject.time += 1
      const lease = await subject.store.acquire('s', asked)
      await refusal('lease_lost', () => subject.store.append(stale, [record(1)]))
      await refusal('lease_lost', () => subject.store.renew(stale, 1000))
      await subject.store.release(stale)
      await refusal('session_busy', () => subject.store.acquire('s', asked))
      await subject.store.append(lease, [record(1)])
    })

    test('is lost with its release', async () => {
      const lease = await subject.store.acquire('s', asked)
      await subject.store.append(lease, [record(1)])
      await subject.store.release(lease)
      await refusal('lease_lost', () => subject.store.append(lease, [record(2)]))
      await refusal('lease_lost', () => subject.store.renew(lease, 1000))
    })

    test('of one session does not open another', async () => {
      const lease = await subject.store.acquire('a', asked)
      await subject.store.acquire('b', asked)
      await refusal('lease_lost', () => subject.store.append({ ...lease, sessionId: 'b' }, [record(1)]))
      await refusal('lease_lost', () => subject.store.append({ ...lease, sessionId: 'c' }, [record(1)]))
    })

    test.each([Number.NaN, -1, Infinity])('refuses to last for %p milliseconds', async (ttlMs) => {
      expect(await failure(() => subject.store.acquire('s', { holder: 'x', ttlMs }))).toMatchObject({
        code: 'invalid_lease',
      })
      const lease = await subject.store.acquire('s', asked)
      expect(await failure(() => subject.store.renew(lease, ttlMs))).toMatchObject({ code: 'invalid_lease' })
      await subject.store.append(lease, [record(1)])
    })

    test('is for ids that are allowed', async () => {
      for (const id of ['', '../x', 'a b', '.hidden', 'x'.repeat(201)]) {
        expect(await failure(() => subject.store.acquire(id, asked))).toMatchObject({
          code: 'invalid_session',
        })
      }
      expect((await subject.store.acquire('Team:a_b@x.y-1', asked)).sessionId).toBe('Team:a_b@x.y-1')
    })
  })
}
