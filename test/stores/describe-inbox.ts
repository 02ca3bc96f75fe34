import { asked, record, records, refusal, type Subject, summary } from './support.js'

/** What every store does that takes messages for its sessions. */
export function describeInbox(subject: Subject): void {
  describe('the inbox', () => {
    const inbox = () => {
      const { inbox: found } = subject.store
      if (!found) throw new Error('The store has no inbox.')
      return found
    }
    /** A session with a record, which nobody holds. */
    const written = async (id: string) => {
      const lease = await subject.store.acquire(id, asked)
      await subject.store.append(lease, [record(1)], summary(id))
      await subject.store.release(lease)
    }

    test('keeps messages in order, numbered, until they are removed; no number is used twice', async () => {
      await written('s')
      await written('other')
      expect(await inbox().read('s')).toEqual([])
      const texts = ['{"type":"PAUSE"}', '{"text":"Grüße \\u0000 \u{1F600} \' \\" \\\\"}', '{}']
      for (const [index, text] of texts.entries()) {
        subject.time += 5
        expect(await inbox().put('s', text)).toEqual({ message: index + 1, holder: null })
      }
      expect((await inbox().put('other', '{}')).message).toBe(1)
      expect(await inbox().read('s')).toEqual(
        texts.map((text, index) => ({ message: index + 1, at: subject.time - 10 + 5 * index, text })),
      )
      await inbox().remove('s', [1, 3])
      await inbox().remove('s', [1, 9])
      expect((await inbox().read('s')).map(({ message }) => message)).toEqual([2])
      await inbox().remove('s', [2])
      expect(await inbox().read('s')).toEqual([])
      expect((await inbox().put('s', '{}')).message).toBe(4)
      expect(await inbox().read('other')).toHaveLength(1)
    })

    test('tells who held the session when a message came, and the holder with its next write', async () => {
      const { store } = subject
      const lease = await store.acquire('s', { holder: 'run 4f2a', ttlMs: 1000 })
      expect(lease.inbox ?? 0).toBe(0)
      expect(await store.append(lease, records(1, 2))).toEqual({ inbox: 0 })
      const { holder } = await inbox().put('s', '{}')
      expect(holder).toContain('run 4f2a')
      expect(await store.append(lease, [record(3)])).toEqual({ inbox: 1 })
      expect(await store.append(lease, [record(4)], summary('s'))).toEqual({ inbox: 1 })
      await inbox().put('s', '{}')
      expect(await store.append(lease, [], summary('s'))).toEqual({ inbox: 2 })
      await inbox().remove('s', [1, 2])
      expect(await store.append(lease, [record(5)])).toEqual({ inbox: 0 })
      await inbox().put('s', '{}')
      expect(await store.release(lease)).toEqual({ inbox: 3 })
      expect((await inbox().put('s', '{}')).holder).toBeNull()
      const next = await store.acquire('s', { holder: 'run 5', ttlMs: 1000 })
      expect(next.inbox).toBe(4)
      subject.time += 1000
      expect((await inbox().put('s', '{}')).holder).toBeNull()
    })

    test('is of sessions with a record alone, and goes with them', async () => {
      const { store } = subject
      await refusal('unknown_session', () => inbox().put('nobody', '{}'))
      const lease = await store.acquire('s', asked)
      await refusal('unknown_session', () => inbox().put('s', '{}'))
      await store.append(lease, [record(1)])
      await inbox().put('s', '{}')
      await store.release(lease)
      await store.delete('s')
      expect(await inbox().read('s')).toEqual([])
      await written('s')
      expect(await inbox().read('s')).toEqual([])
      expect((await inbox().put('s', '{}')).message).toBe(1)
      for (const strange of ['', "s' OR 1=1 --", '\u0000', '../s', 'é'.repeat(300)]) {
        expect(await inbox().read(strange)).toEqual([])
        await refusal('unknown_session', () => inbox().put(strange, '{}'))
      }
    })

    test('takes messages of many at once, and numbers each by itself', async () => {
      await written('s')
      const put = await Promise.all(Array.from({ length: 40 }, async (_, n) => inbox().put('s', `${n}`)))
      expect(put.map(({ message }) => message).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 40 }, (_, n) => n + 1),
      )
      const found = await inbox().read('s')
      expect(found.map(({ message }) => message)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
      for (const [n, { message }] of put.entries()) expect(found[message - 1]?.text).toBe(`${n}`)
    })

    test('says which of many sessions have messages, where other processes can leave some', async () => {
      for (const id of ['a', 'b', 'c']) await written(id)
      await inbox().put('a', '{}')
      await inbox().put('a', '{}')
      await inbox().put('c', '{}')
      const waiting = await inbox().waiting?.(['a', 'b', 'nobody', '\u0000'])
      expect(waiting ?? [{ sessionId: 'a', inbox: 2 }]).toEqual([{ sessionId: 'a', inbox: 2 }])
      expect((await inbox().waiting?.([])) ?? []).toEqual([])
    })
  })
}
