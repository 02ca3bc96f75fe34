import { unpackMoment } from '../pack-moments.js'
import type { MomentView, PackedMoments } from '../protocol.js'
import { latestMessages, paths } from '../routes.js'
import type { Source } from './data-source.js'

const blockSize = 128

export type MomentCache = ReturnType<typeof createMomentCache>

export function createMomentCache(
  source: Pick<Source, 'send'>,
  id: string,
  { known, isWhole }: { known: MomentView | null; isWhole: boolean },
) {
  const latest = isWhole ? undefined : latestMessages
  const blocks = new Map<number, { end: number; request: Promise<PackedMoments>; packed?: PackedMoments }>()
  const read = new Map<number, MomentView>()
  if (known && !(isWhole && known.earlier > 0)) read.set(known.seq, known)

  const unpack = (packed: PackedMoments | undefined, seq: number): MomentView | null => {
    const moment = packed ? unpackMoment(packed, seq) : null
    if (moment) read.set(seq, moment)
    return moment
  }
  const load = (first: number, last: number): Promise<PackedMoments> =>
    source.send(paths.moments(id, first, last, latest))
  const fetchBlock = async (at: number, last: number): Promise<void> => {
    const end = Math.min(last, (at + 1) * blockSize)
    const before = blocks.get(at)
    // A request from before the last records may still be open.
    const isCurrent = before !== undefined && before.end >= end
    const block = isCurrent ? before : { ...before, end, request: load(at * blockSize + 1, end) }
    blocks.set(at, block)
    try {
      block.packed = await block.request
    } catch (error) {
      const isLatest = blocks.get(at) === block
      if (isLatest && !isCurrent && before?.packed) blocks.set(at, before)
      else if (isLatest) blocks.delete(at)
      throw error
    }
  }
  const findMoment = (seq: number): MomentView | null =>
    read.get(seq) ?? unpack(blocks.get(toBlock(seq))?.packed, seq)

  return {
    findMoment,
    /** Prefetches the neighboring blocks too. The first call loads only this record, which is faster. */
    loadMoment: async (seq: number, last: number): Promise<MomentView | null> => {
      const at = toBlock(seq)
      const moment = findMoment(seq)
      if (!moment && blocks.size === 0) unpack(await load(seq, seq), seq)
      else if (!moment) await fetchBlock(at, last)
      for (const near of [at, at + 1, at - 1])
        if (near >= 0 && near * blockSize < last) fetchBlock(near, last).catch(() => undefined)
      return moment ?? findMoment(seq)
    },
    /** The moments may have changed, or their block may have grown. */
    forgetFrom: (seq: number): void => {
      for (const at of blocks.keys()) if (at >= toBlock(seq)) blocks.delete(at)
      for (const at of read.keys()) if (at >= seq) read.delete(at)
    },
  }
}

function toBlock(seq: number): number {
  return Math.floor((seq - 1) / blockSize)
}
