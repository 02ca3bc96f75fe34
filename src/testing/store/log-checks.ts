import type { LogRecord, SessionStore } from '../../core/sessions/store/store.js'
import { createRandomChoices } from '../check-assertions.js'
import * as t from './store-scene.js'

export const logChecks: t.StoreChecks = {
  'the log returns the records in order across several appends': async ({ store }) => {
    const lease = await t.hold(store)
    const written = [t.record(1, '{"type":"start"}', 'opened'), t.record(2, '{}', 'start'), t.record(3)]
    await store.append(lease, written.slice(0, 2))
    await store.append(lease, written.slice(2))
    t.same('the log', await store.read('s'), written)
  },
  'the log keeps any JSON text unchanged': async ({ store, seed }) => {
    const lease = await t.hold(store)
    const { text, whole } = createRandomChoices(seed)
    const hard = ['\u0000', '\ud800', '😀', "'; DROP TABLE records; --", '{1,"NULL"}\\']
    let seq = 0
    for (let round = 0; round < 30; round += 1) {
      const texts = round === 0 ? hard : Array.from({ length: 1 + whole(4) }, () => text(200))
      const from = seq + 1
      const added = texts.map((value) => t.record(++seq, JSON.stringify({ value })))
      await store.append(lease, added)
      t.same(`the records ${from} to ${seq}`, await store.read('s', { from }), added)
    }
  },
  'the log keeps a record of one megabyte': async ({ store }) => {
    const lease = await t.hold(store)
    const large = t.record(1, JSON.stringify('é'.repeat(1_000_000)), 'snapshot')
    await store.append(lease, [large, t.record(2)])
    const log = await store.read('s')
    const lengthsOf = (records: readonly LogRecord[]) => records.map(({ data }) => data.length)
    t.same('the length of each record', lengthsOf(log), lengthsOf([large, t.record(2)]))
    t.same('the log', log, [large, t.record(2)])
  },
  'the log of a session that does not exist is empty': async ({ store }) => {
    t.same('the log', await store.read('nobody'), [])
    t.same('the log from its snapshot', await store.read('nobody', { from: 'snapshot' }), [])
  },
  'the log is read in ranges, and an invalid range is empty': async ({ store }) => {
    await store.append(await t.hold(store), t.records(1, 9))
    const ranges: [range: Parameters<SessionStore['read']>[1], seqs: number[]][] = [
      [{ from: 7 }, [7, 8, 9]],
      [{ to: 2 }, [1, 2]],
      [{ from: 4, to: 5 }, [4, 5]],
      [{ from: -3, to: Infinity }, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
      [{ from: 1.5, to: 3.5 }, [2, 3]],
      [{ from: 5, to: 4 }, []],
      [{ from: 10 }, []],
      [{ from: Number.NaN }, []],
      [{ to: Number.NaN }, []],
      [{ to: 0 }, []],
      [{ from: 'snapshot', to: -1 }, []],
    ]
    for (const [range, wanted] of ranges) {
      const words = Object.entries(range ?? {}).map(([key, value]) => `${key}: ${value}`)
      const found = await store.read('s', range)
      t.same(`the range { ${words.join(', ')} }`, t.seqs(found), wanted)
    }
  },
  'the log is read from the last snapshot in the range, or from the start': async ({ store }) => {
    const lease = await t.hold(store)
    await store.append(lease, t.records(1, 9))
    const reaches = async (to: number | undefined, wanted: number[]) => {
      const found = await store.read('s', { from: 'snapshot', ...(to !== undefined && { to }) })
      t.same(`the range from the snapshot to ${to ?? 'the head'}`, t.seqs(found), wanted)
    }
    await reaches(3, [1, 2, 3])
    await store.append(lease, [
      t.record(10, '{}', 'snapshot'),
      t.record(11),
      t.record(12, '{}', 'snapshot'),
      t.record(13),
    ])
    await reaches(undefined, [12, 13])
    await reaches(12, [12])
    await reaches(11, [10, 11])
    await reaches(2, [1, 2])
  },
  "an append must follow the log's head and is atomic": async ({ store }) => {
    const lease = await t.hold(store)
    await store.append(lease, t.records(1, 2))
    for (const wrong of [[2], [4], [0], [3, 5], [3, 3], [3, 4, 3]]) {
      const what = `an append of ${wrong.join(', ')} to a log of two`
      const added = wrong.map((seq) => t.record(seq))
      await t.refused(what, 'out_of_order', () => store.append(lease, added))
      t.same(`the log after ${what}`, await store.read('s'), t.records(1, 2))
    }
    await t.add(store, lease, 3)
    t.same('the log', await store.read('s'), t.records(1, 3))
  },
  'the log refuses records it could not return unchanged': async ({ store }) => {
    const lease = await t.hold(store)
    for (const [what, bad] of [
      ['data with a NUL', t.record(1, 'a\u0000b')],
      ['data with an unpaired surrogate', t.record(1, 'a\ud800b')],
      ['an `at` of half a millisecond', { ...t.record(1), at: 0.5 }],
      ['an `at` that is not a number', { ...t.record(1), at: Number.NaN }],
      ['no data', { ...t.record(1), data: undefined as never }],
      ['a check with a NUL', { ...t.record(1), check: '\u0000' }],
    ] as const) {
      await t.refused(`a record with ${what}`, 'invalid_record', () => store.append(lease, [bad]))
    }
    t.same('the log', await store.read('s'), [])
  },
}
