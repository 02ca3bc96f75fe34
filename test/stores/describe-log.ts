import fc from 'fast-check'
import { UsageError } from '../../src/core/base/errors.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { asked, failure, record, records, refusal, type Subject } from './support.js'

export function describeLog(subject: Subject): void {
  describe('the log', () => {
    test('is read as it was written, in order, over several appends', async () => {
      const lease = await subject.store.acquire('s', asked)
      await subject.store.append(lease, [record(1, '{"type":"start"}', 'opened'), record(2, '{}', 'start')])
      await subject.store.append(lease, [record(3)])
      expect(await subject.store.read('s')).toEqual([
        record(1, '{"type":"start"}', 'opened'),
        record(2, '{}', 'start'),
        record(3),
      ])
    })

    test('keeps every text that JSON can hold', async () => {
      const lease = await subject.store.acquire('s', asked)
      let seq = 0
      const text = fc.string({ unit: 'binary', maxLength: 200 })
      await fc.assert(
        fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 5 }), async (texts) => {
          const from = seq + 1
          const added = texts.map((value) => record(++seq, JSON.stringify({ value })))
          await subject.store.append(lease, added)
          expect(await subject.store.read('s', { from })).toEqual(added)
        }),
        {
          numRuns: 30,
          examples: [[['\u0000', '\ud800', '😀', "'; DROP TABLE records; --", '{1,"NULL"}\\']]],
        },
      )
    })

    test('keeps a record of a megabyte', async () => {
      const lease = await subject.store.acquire('s', asked)
      const large = record(1, JSON.stringify('é'.repeat(1_000_000)), 'snapshot')
      await subject.store.append(lease, [large, record(2)])
      expect(await subject.store.read('s')).toEqual([large, record(2)])
    })

    test('of a session that does not exist is empty', async () => {
      expect(await subject.store.read('nobody')).toEqual([])
      expect(await subject.store.read('nobody', { from: 'snapshot' })).toEqual([])
    })

    test('is read in ranges, and a range that makes no sense has nothing in it', async () => {
      const lease = await subject.store.acquire('s', asked)
      await subject.store.append(lease, records(1, 9))
      const seqs = async (range: Parameters<SessionStore['read']>[1]) =>
        (await subject.store.read('s', range)).map(({ seq }) => seq)
      expect(await seqs({ from: 7 })).toEqual([7, 8, 9])
      expect(await seqs({ to: 2 })).toEqual([1, 2])
      expect(await seqs({ from: 4, to: 5 })).toEqual([4, 5])
      expect(await seqs({ from: -3, to: Infinity })).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
      expect(await seqs({ from: 1.5, to: 3.5 })).toEqual([2, 3])
      expect(await seqs({ from: 5, to: 4 })).toEqual([])
      expect(await seqs({ from: 10 })).toEqual([])
      expect(await seqs({ from: Number.NaN })).toEqual([])
      expect(await seqs({ to: Number.NaN })).toEqual([])
      expect(await seqs({ to: 0 })).toEqual([])
      expect(await seqs({ from: 'snapshot', to: -1 })).toEqual([])
    })

    test('is read from the last snapshot that the range reaches, or else from the beginning', async () => {
      const lease = await subject.store.acquire('s', asked)
      await subject.store.append(lease, records(1, 9))
      const seqs = async (to?: number) =>
        (
          await subject.store.read('s', to === undefined ? { from: 'snapshot' } : { from: 'snapshot', to })
        ).map(({ seq }) => seq)
      expect(await seqs(3)).toEqual([1, 2, 3])
      await subject.store.append(lease, [
        record(10, '{}', 'snapshot'),
        record(11),
        record(12, '{}', 'snapshot'),
        record(13),
      ])
      expect(await seqs()).toEqual([12, 13])
      expect(await seqs(12)).toEqual([12])
      expect(await seqs(11)).toEqual([10, 11])
      expect(await seqs(2)).toEqual([1, 2])
    })

    test('takes only records that follow its head, and all of them or none', async () => {
      const lease = await subject.store.acquire('s', asked)
      await subject.store.append(lease, records(1, 2))
      for (const wrong of [
        [record(2)],
        [record(4)],
        [record(0)],
        [record(3), record(5)],
        [record(3), record(3)],
        [record(3), record(4), record(3)],
      ]) {
        await refusal('out_of_order', () => subject.store.append(lease, wrong))
        expect(await subject.store.read('s')).toEqual(records(1, 2))
      }
      await subject.store.append(lease, [record(3)])
      expect(await subject.store.read('s')).toEqual(records(1, 3))
    })

    test('refuses a record that it could not give back unchanged', async () => {
      const lease = await subject.store.acquire('s', asked)
      for (const bad of [
        record(1, 'a\u0000b'),
        record(1, 'a\ud800b'),
        { ...record(1), at: 0.5 },
        { ...record(1), at: Number.NaN },
        { ...record(1), data: undefined as never },
        { ...record(1), check: '\u0000' },
      ]) {
        const error = await failure(() => subject.store.append(lease, [bad]))
        expect(error).toBeInstanceOf(UsageError)
        expect(error).toMatchObject({ code: 'invalid_record' })
      }
      expect(await subject.store.read('s')).toEqual([])
    })
  })
}
