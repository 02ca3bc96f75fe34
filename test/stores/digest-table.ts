import { type DigestTable, openDigests } from '../../src/core/sessions/store/log-digests.js'
import { sealRecord } from '../../src/core/sessions/log/log-record.js'
import type { ListedSession, SessionStore } from '../../src/core/sessions/store/store.js'

/** Appends this many records to a session's log. */
export async function grow(store: SessionStore, id: string, by = 1): Promise<ListedSession> {
  const lease = await store.acquire(id, { holder: 'a test', ttlMs: 60_000 })
  const head = (await store.get(id))?.head ?? 0
  const records = Array.from({ length: by }, (_, i) =>
    sealRecord(head + i + 1, 0, { type: 'opened', version: 1 } as never),
  )
  await store.append(lease, records)
  await store.release(lease)
  return (await store.get(id)) as ListedSession
}

/** The contract of all digest tables. `open` opens another store at the same place. */
export function describeDigests(name: string, open: (now?: () => number) => SessionStore): void {
  describe(name, () => {
    const tableOf = async (store: SessionStore) => (await openDigests(store)) as DigestTable
    const digestOf = ({ id, head, createdAt }: ListedSession, data: string) => ({
      sessionId: id,
      head,
      createdAt,
      data,
    })

    it('are stored for other processes, replaced, and deleted with their sessions', async () => {
      const [store, other, unasked] = [open(), open(), open()]
      expect(await unasked.delete('none')).toBe(false)
      const [a, b] = [await grow(store, 'a', 3), await grow(store, 'b')]
      const table = await tableOf(store)
      expect(await table.read(['a', 'b', 'none'])).toEqual([])
      await table.put([digestOf(b, '{}'), digestOf(a, '{"text":"\\u0000 \\ud800 ü"}')])
      const seen = await tableOf(other)
      expect(await seen.read(['a'])).toEqual([digestOf(a, '{"text":"\\u0000 \\ud800 ü"}')])
      expect(await seen.read(['a', 'b'])).toHaveLength(2)
      await seen.put([digestOf(a, '{"v":2}')])
      expect(await table.read(['a'])).toEqual([digestOf(a, '{"v":2}')])
      // Deleted by a process that started earlier and never requested digests.
      expect(await unasked.delete('a')).toBe(true)
      expect(await table.read(['a', 'b'])).toEqual([digestOf(b, '{}')])
      await table.put([])
    })

    it('are returned only for logs with the same end, not for a log that has grown, changed or gone', async () => {
      let time = 1_000
      const store = open(() => time)
      const table = await tableOf(store)
      const first = await grow(store, 's', 2)
      const grown = await grow(store, 's')
      await table.put([digestOf(first, 'old'), digestOf({ ...first, id: 'none' }, 'none')])
      expect(await table.read(['s', 'none'])).toEqual([])
      await table.put([digestOf(grown, 'new')])
      await grow(store, 's')
      // The digest stays, with its end position, until a reader has read further.
      expect(await table.read(['s'])).toEqual([digestOf(grown, 'new')])
      await store.delete('s')
      time = 2_000
      const again = await grow(store, 's', 3)
      expect(again).toMatchObject({ head: grown.head })
      await table.put([digestOf(grown, 'of the deleted one')])
      expect(await table.read(['s'])).toEqual([])
    })

    it('belong to the store itself, and a wrapper has none', async () => {
      expect(await openDigests({ ...open() })).toBeNull()
    })

    it('are found by stores that open them at the same time', async () => {
      const stores = [open(), open(), open()]
      await Promise.all(stores.map((store, i) => grow(store, `s${i}`)))
      const tables = await Promise.all(stores.map(tableOf))
      const listed = await stores[0]?.list()
      await Promise.all(
        tables.map(async (table) => table.put((listed ?? []).map((one) => digestOf(one, '1')))),
      )
      expect(await tables[0]?.read(['s0', 's1', 's2'])).toHaveLength(3)
    })
  })
}
