import { createMomentCache } from '../../src/studio/client/moment-cache.js'
import type { Source } from '../../src/studio/client/data-source.js'
import type { MomentView, PackedMoments } from '../../src/studio/protocol.js'

const pack = (first: number, last: number): PackedMoments => ({
  parts: [null],
  moments: Array.from({ length: last - first + 1 }, (_, i) => ({
    seq: first + i,
    earlier: 0,
    changed: [],
    record: 0,
    instructions: 0,
    context: 0,
    lists: [],
  })),
})

test('shows a new record, although a request from before it is still open', async () => {
  const open: (() => void)[] = []
  const send = (address: string): Promise<PackedMoments> => {
    const [first = 0, last = 0] = [...address.matchAll(/(?:from|to)=(\d+)/g)].map(([, seq]) => Number(seq))
    return new Promise((resolve) => open.push(() => resolve(pack(first, last))))
  }
  const known = { seq: 5, earlier: 0 } as MomentView
  const cache = createMomentCache({ send } as unknown as Source, 's', { known, isWhole: false })
  // Records 6 and 7 arrive before the page is drawn again, and the page prefetches for the records that it shows.
  cache.forgetFrom(6)
  await cache.loadMoment(5, 5)
  const shown = cache.loadMoment(7, 7)
  for (const answer of open) answer()
  expect(await shown).toMatchObject({ seq: 7 })
})
