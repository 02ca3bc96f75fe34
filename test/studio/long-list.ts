import { memoryStore, type SessionStore } from '../../src/index.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { latch } from '../support/play.js'
import { eventful, play } from './rehearsed.js'
import { visit, type Visitor } from './visitor.js'

/** More than the studio lists initially. */
const count = 250
const numbers = Array.from({ length: count }, (_, i) => i)

/** A list longer than a page, whose sessions another process may also write. `open` always opens the same place. */
export function describeLongList(name: string, open: () => SessionStore): void {
  describe(name, () => {
    const played = memoryStore()

    beforeAll(async () => {
      const asks = await play(played, 'asks', eventful, 'Pay the invoice.')
      await asks.close()
      const ended = await play(played, 'ended', [{ text: 'Blue, mostly.' }], 'Pay the invoice.')
      await ended.close()
    })

    /** Copies a played session to another id. */
    const writeCopy = async (
      store: SessionStore,
      id: string,
      of: 'asks' | 'ended' = 'ended',
    ): Promise<void> => {
      const { summary } = played.get(of) ?? {}
      if (!summary) throw new Error('It has no summary.')
      const lease = await store.acquire(id, { holder: 'the test', ttlMs: 600_000 })
      await store.append(lease, played.read(of), summary)
      await store.release(lease)
    }

    const fill = async (store: SessionStore): Promise<void> => {
      await writeCopy(store, 'waits', 'asks')
      await Promise.all(numbers.map((i) => writeCopy(store, `old-${i}`)))
    }

    it('shows waiting sessions on its first page, regardless of their time, and states that it is incomplete', async () => {
      const store = open()
      await fill(store)
      const rest = latch()
      // The rest of the list loads when the test allows it.
      const slow: SessionStore = {
        ...store,
        list: async (options) => {
          if (options?.children !== false) await rest.opened
          return store.list(options)
        },
      }
      const visitor = await visit({ store: slow })
      const first = await visitor.get<SessionsView>(paths.sessions)
      expect(first).toMatchObject({ isWhole: false, total: 201, counts: { waiting: 1, ended: 200 } })
      expect(first.unread).toBeGreaterThan(0)
      expect(first.sessions).toHaveLength(60)
      expect(first.sessions[0]).toMatchObject({
        id: 'waits',
        status: 'waiting',
        tokens: expect.any(Number),
      })
      rest.open()
      const whole = await findUntil(visitor, ({ isWhole }) => isWhole)
      expect(whole).toMatchObject({ total: count + 1, counts: { waiting: 1, ended: count } })
      expect(whole.sessions[0]).toMatchObject({ id: 'waits' })
    })

    it('shows sessions that another process has written, renamed and deleted', async () => {
      const store = open()
      await fill(store)
      const visitor = await visit({ store })
      await findUntil(visitor, ({ isWhole }) => isWhole)
      const other = open()
      await writeCopy(other, 'new')
      await writeCopy(other, 'asks', 'asks')
      await other.setTitle?.('old-3', 'A trip to Lisbon')
      await other.delete('old-249')
      await findUntil(visitor, ({ sessions }) =>
        ['asks', 'new'].every((id) => sessions.some((row) => row.id === id)),
      )
      await findUntil(visitor, ({ total }) => total === 1, 'lisbon')
      await findUntil(visitor, ({ total }) => total === 0, 'old-249')
      const { total, counts } = await findUntil(visitor, ({ isWhole }) => isWhole)
      expect({ total, counts }).toEqual({ total: count + 2, counts: { waiting: 2, ended: count } })
    })
  })
}

/** Requests the list repeatedly until the condition holds. */
async function findUntil(
  visitor: Visitor,
  isSo: (view: SessionsView) => boolean,
  q = '',
): Promise<SessionsView> {
  for (;;) {
    const view = await visitor.get<SessionsView>(paths.found({ q }))
    if (isSo(view)) return view
  }
}
