import { useEffect } from 'preact/hooks'
import { unpackMoment } from '../pack-moments.js'
import type { EndView, MomentView, PackedMoments, RecordRow, SessionView } from '../protocol.js'
import { latestMessages } from '../routes.js'
import type { Source } from './data-source.js'
import { type LoadedState, useLoaded } from './loading.js'

/** The number of records per block. */
const blockSize = 128

/** Loaded moments of one session, by block, with all messages or only the latest. */
export class MomentCache {
  readonly #source: Source
  readonly #id: string
  readonly #latest: number | undefined
  readonly #blocks = new Map<number, Promise<PackedMoments>>()
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

  /**
   * Loads the block of this record and prefetches its neighbors. The first call loads only this record, which is
   * faster.
   */
  async loadMoment(seq: number, last: number): Promise<MomentView | null> {
    const known = this.findMoment(seq)
    if (known) {
      this.#prefetchNear(seq, last)
      return known
    }
    if (this.#blocks.size === 0) {
      const moment = unpackMoment(await this.#load(seq, seq), seq)
      if (moment) this.#read.set(seq, moment)
      this.#prefetchNear(seq, last)
      return moment
    }
    await this.#fetchBlock(toBlock(seq), last)
    this.#prefetchNear(seq, last)
    return this.findMoment(seq)
  }

  #prefetchNear(seq: number, last: number): void {
    for (const near of [toBlock(seq), toBlock(seq) + 1, toBlock(seq) - 1]) {
      if (near >= 0 && near * blockSize < last) this.#fetchBlock(near, last).catch(() => undefined)
    }
  }

  /** Drops moments from this record on, because the moments may have changed or their block may have grown. */
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
    let request = this.#blocks.get(at)
    if (!request) {
      request = this.#load(at * blockSize + 1, Math.min(last, (at + 1) * blockSize))
      this.#blocks.set(at, request)
    }
    try {
      const packed = await request
      if (this.#blocks.get(at) === request) this.#loaded.set(at, packed)
    } catch (error) {
      if (this.#blocks.get(at) === request) this.#blocks.delete(at)
      throw error
    }
  }
}

function toBlock(seq: number): number {
  return Math.floor((seq - 1) / blockSize)
}

/** Loads a session. The end of a long session is loaded first. */
export function useOpenedSession(source: Source, id: string, seq: number | null): LoadedState<EndView> {
  const opened = useLoaded(`session ${id}`, async (): Promise<EndView> => {
    if (seq !== null) return { view: await source.session(id), moment: null }
    const { view, moment } = await source.end(id)
    return { view: addBlankRows(view), moment }
  })
  const isPart = opened.value?.view.isPart === true
  useEffect(() => {
    if (!isPart) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const ask = (): void => {
      source.session(id).then(
        (view) => isOver || opened.set(() => ({ view, moment: null })),
        () => {
          if (!isOver) timer = setTimeout(ask, 1_000)
        },
      )
    }
    ask()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [source, id, isPart])
  return opened
}

/** Adds a blank row for each missing record, so that positions on the timeline stay the same. */
function addBlankRows(view: SessionView): SessionView {
  const [first] = view.rows
  if (!view.isPart || !first) return view
  const blanks = Array.from({ length: first.seq - 1 }, (_, i) => ({
    ...blankRow,
    seq: i + 1,
    at: first.at,
    run: first.run,
  }))
  return { ...view, rows: [...blanks, ...view.rows] }
}

/** A row without content. */
export const blankRow: RecordRow = {
  seq: 0,
  at: 0,
  run: 0,
  type: 'event',
  label: '…',
  from: [],
  to: [],
  transitionIds: [],
  state: '',
  step: 0,
  tokens: 0,
  cost: null,
  paid: 0,
  flags: [],
  started: [],
  calls: [],
}
