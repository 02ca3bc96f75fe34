import { asked, failure, record, records, refusal, type Subject, summary } from './support.js'

export function describeList(subject: Subject): void {
  describe('the list', () => {
    test('has every session with a record, the one written last first, and tells who writes to it', async () => {
      const { store, time } = subject
      const leases = []
      for (const id of ['a', 'b', 'c']) {
        subject.time += 10
        const lease = await store.acquire(id, { holder: `writer of ${id}`, ttlMs: 1000 })
        await store.append(lease, records(1, 2), summary(`about ${id}`))
        leases.push(lease)
      }
      await store.acquire('not-written', asked)
      const [a, b] = leases
      if (!a || !b) throw new Error('no leases')
      subject.time += 10
      await store.append(a, [record(3)])
      await store.release(b)

      const list = await store.list()
      expect(list).toEqual([
        expect.objectContaining({ id: 'a', createdAt: time + 10, updatedAt: time + 40, head: 3 }),
        expect.objectContaining({ id: 'c', createdAt: time + 30, updatedAt: time + 30, head: 2 }),
        expect.objectContaining({ id: 'b', createdAt: time + 20, updatedAt: time + 20, head: 2 }),
      ])
      expect(list.map((entry) => entry.summary)).toEqual(['a', 'c', 'b'].map((id) => summary(`about ${id}`)))
      expect(list[0]?.holder).toContain('writer of a')
      expect(list[2]?.holder).toBeNull()

      subject.time += 1000
      expect((await store.list()).map(({ holder }) => holder)).toEqual([null, null, null])
    })

    test('has what is told of one session alone; of one without a record, nothing', async () => {
      const { store } = subject
      expect(await store.get('s')).toBeNull()
      const lease = await store.acquire('s', asked)
      expect(await store.get('s')).toBeNull()
      await store.append(lease, records(1, 2), summary('about s'))
      await store.append(await store.acquire('other', asked), records(1, 3))
      expect(await store.get('s')).toEqual((await store.list()).find(({ id }) => id === 's'))
      expect(await store.get('s')).toMatchObject({ head: 2, summary: summary('about s') })
      expect((await store.get('s'))?.holder).toContain('run 1')
      subject.time += 10
      await store.release(lease)
      expect(await store.get('s')).toEqual((await store.list()).find(({ id }) => id === 's'))
      expect((await store.get('s'))?.holder).toBeNull()
      expect(await store.delete('s')).toBe(true)
      expect(await store.get('s')).toBeNull()
      for (const strange of ['', 'S', "s' OR 1=1 --", '\u0000', '../s', 'é'.repeat(300)]) {
        expect(await store.get(strange)).toBeNull()
      }
    })

    test('is told by state and agent, page by page, and nothing twice', async () => {
      const { store } = subject
      const states = ['RUNNING', 'PAUSED', 'COMPLETED', 'WAITING_FOR_INPUT'] as const
      const held = new Set<string>()
      for (let n = 0; n < 40; n += 1) {
        const id = `s${n}`
        // Several of one moment: the id decides.
        if (n % 3 === 0) subject.time += 10
        const lease = await store.acquire(id, { holder: 'me', ttlMs: 100_000 })
        const state = states[n % 4] ?? null
        await store.append(lease, [record(1)], {
          ...summary(id),
          state,
          ...(n % 5 === 0 && { agent: 'billing' }),
        })
        if (n % 7 === 0) {
          subject.time += 1
          await store.append(lease, [record(2)])
        }
        if (n % 6 === 0) held.add(id)
        else await store.release(lease)
      }
      const all = await store.list()
      expect(all).toHaveLength(40)
      const idsOf = (list: { id: string }[]) => list.map(({ id }) => id)
      const newestFirst = [...all].sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1))
      expect(idsOf(all)).toEqual(idsOf(newestFirst))
      expect(all.filter(({ holder }) => holder !== null)).toHaveLength(held.size)
      for (const state of [
        undefined,
        'PAUSED',
        ['RUNNING', 'COMPLETED', 'RUNNING'],
        ['ERROR'],
        [],
      ] as const) {
        for (const agent of [undefined, 'billing', 'nobody']) {
          const wanted = all.filter(
            ({ summary: told }) =>
              (state === undefined || [state].flat().includes(told?.state as never)) &&
              (agent === undefined || told?.agent === agent),
          )
          const pages: typeof all = []
          for (;;) {
            const page = await store.list({ state, agent, limit: 3, cursor: pages.at(-1) })
            pages.push(...page)
            if (page.length < 3) break
          }
          expect(pages).toEqual(wanted)
          expect(await store.list({ state, agent })).toEqual(wanted)
        }
      }
    })

    test('refuses options that make no sense', async () => {
      for (const [key, value] of [
        ['state', 7],
        ['agent', 7],
        ['limit', 0],
        ['limit', 1.5],
        ['cursor', 's'],
        ['cursor', { id: 's' }],
      ] as const) {
        const error = await failure(() => subject.store.list({ [key]: value }))
        expect(error).toMatchObject({ code: 'invalid_option', subject: key })
      }
    })

    test('has the last summary that was written, or none', async () => {
      const { store } = subject
      const lease = await store.acquire('s', asked)
      await store.append(lease, [record(1)])
      expect((await store.list())[0]?.summary).toBeNull()
      const first = summary('Quotes \' " \\ \u0000 and \u{1F600}')
      await store.append(lease, [record(2)], first)
      await store.append(lease, [record(3)])
      expect((await store.list())[0]).toMatchObject({ head: 3, summary: first })
      await store.append(lease, [], { ...first, name: 'renamed', cost: 0.25 })
      expect((await store.list())[0]).toMatchObject({
        head: 3,
        summary: { ...first, name: 'renamed', cost: 0.25 },
      })
    })
  })

  describe('deleting', () => {
    test('removes a session with all its records, and says whether there was one', async () => {
      const { store } = subject
      const lease = await store.acquire('s', asked)
      await store.append(lease, records(1, 3), summary('gone'))
      await store.release(lease)
      const kept = await store.acquire('kept', asked)
      await store.append(kept, [record(1)])

      expect(await store.delete('s')).toBe(true)
      expect(await store.delete('s')).toBe(false)
      expect(await store.delete('nobody')).toBe(false)
      expect(await store.read('s')).toEqual([])
      expect((await store.list()).map(({ id }) => id)).toEqual(['kept'])

      const again = await store.acquire('s', asked)
      await store.append(again, [record(1)])
      expect(await store.read('s')).toEqual([record(1)])
      expect((await store.list()).find(({ id }) => id === 's')?.summary).toBeNull()
    })

    test('is refused while somebody writes to the session', async () => {
      const { store } = subject
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: 100 })
      await store.append(lease, [record(1)])
      const error = await refusal('session_busy', () => store.delete('s'))
      expect(error.message).toContain('run 4f2a')
      expect(await store.read('s')).toEqual([record(1)])
      subject.time += 100
      expect(await store.delete('s')).toBe(true)
      await refusal('lease_lost', () => store.renew(lease, 100))
      await refusal('lease_lost', () => store.append(lease, [record(2)]))
      expect(await store.read('s')).toEqual([])
    })
  })
}
