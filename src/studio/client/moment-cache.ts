import { unpackMoment } from '../pack-moments.js'
import type { MomentView, PackedMoments } from '../protocol.js'
import { latestMessages } from '../routes.js'
import type { Source } from './data-source.js'

const blockSize = 128

export class MomentCache {
  readonly #source: Source
  readonly #id: string
  readonly #latest: number | undefined
  readonly #blocks = new Map<number, { end: number; request: Promise<PackedMoments> }>()
  readonly #loaded = new Map<number, PackedMoments>()
  readonly #read = new Map<number, MomentView>()

  constructor(
    source: Source,
    id: string,
    { known, isWhole }: { known: MomentView | null; isWhole: boolean },
  ) {
    this.#source = source
    this.#id = id
    this.#latest = isWhole ? undefined : latestMessages
    if (known && !(isWhole && known.earlier > 0)) this.#read.set(known.seq, known)
  }

  findMoment(seq: number): MomentView | null {
    const known = this.#read.get(seq)
    if (known) return known
    const packed = this.#loaded.get(toBlock(seq))
    const moment = packed ? unpackMoment(packed, seq) : null
    if (moment) this.#read.set(seq, moment)
    return moment
  }

  /** Prefetches the neighboring blocks too. The first call loads only this record, which is faster. */
  async loadMoment(seq: number, last: number): Promise<MomentView | null> {
    const known = this.findMoment(seq)
    if (!known && this.#blocks.size === 0) {
      const moment = unpackMoment(await this.#load(seq, seq), seq)
      if (moment) this.#read.set(seq, moment)
    } else if (!known) await this.#fetchBlock(toBlock(seq), last)
    this.#prefetchNear(seq, last)
    return known ?? this.findMoment(seq)
  }

  #prefetchNear(seq: number, last: number): void {
    for (const near of [toBlock(seq), toBlock(seq) + 1, toBlock(seq) - 1]) {
      if (near >= 0 && near * blockSize < last) this.#fetchBlock(near, last).catch(() => undefined)
    }
  }

  /** The moments may have changed, or their block may have grown. */
  forgetFrom(seq: number): void {
    for (const at of this.#blocks.keys()) {
      if (at < toBlock(seq)) continue
      this.#blocks.delete(at)
      this.#loaded.delete(at)
    }
    for (const known of this.#read.keys()) if (known >= seq) this.#read.delete(known)
  }

  #load(first: number, last: number): Promise<PackedMoments> {
    return this.#source.moments(this.#id, first, last, this.#latest)
  }

  async #fetchBlock(at: number, last: number): Promise<void> {
    const end = Math.min(last, (at + 1) * blockSize)
    let block = this.#blocks.get(at)
    // A request from before the last records may still be open.
    if (!block || block.end < end) {
      block = { end, request: this.#load(at * blockSize + 1, end) }
      this.#blocks.set(at, block)
    }
    try {
      const packed = await block.request
      if (this.#blocks.get(at) === block) this.#loaded.set(at, packed)
    } catch (error) {
      if (this.#blocks.get(at) === block) this.#blocks.delete(at)
      throw error
    }
  }
}

function toBlock(seq: number): number {
  return Math.floor((seq - 1) / blockSize)
}
