import type { MomentView, PackedMoments } from './protocol.js'

/** Parts of a moment that stand in many moments: a message, a value of the context. They are sent once. */
const lists = ['transcript', 'guards', 'budget', 'pending', 'actions'] as const

/** Many moments in little room: a run of 1,000 records has the same messages again and again. */
export class Packer {
  readonly #parts: unknown[] = []
  readonly #places = new Map<string, number>()
  /** The same object is the same part. */
  readonly #known = new WeakMap<object, number>()
  readonly #moments: PackedMoments['moments'] = []

  add(moment: MomentView): void {
    const { seq, record, context, changed } = moment
    const isMap = typeof context === 'object' && context !== null && !Array.isArray(context)
    this.#moments.push({
      seq,
      changed,
      record: this.#place(record),
      context: isMap
        ? Object.fromEntries(Object.entries(context).map(([key, value]) => [key, this.#place(value)]))
        : this.#place(context),
      lists: lists.map((name) => moment[name].map((item) => this.#place(item))),
    })
  }

  get packed(): PackedMoments {
    return { parts: this.#parts, moments: this.#moments }
  }

  #place(part: unknown): number {
    if (typeof part !== 'object' || part === null) return this.#placeOf(part)
    const place = this.#known.get(part) ?? this.#placeOf(part)
    this.#known.set(part, place)
    return place
  }

  #placeOf(part: unknown): number {
    const text = JSON.stringify(part) ?? 'null'
    const known = this.#places.get(text)
    if (known !== undefined) return known
    this.#places.set(text, this.#parts.length)
    return this.#parts.push(part ?? null) - 1
  }
}

/** What `Packer` was given; null for a moment that is not among them. */
export function unpackMoment({ parts, moments }: PackedMoments, seq: number): MomentView | null {
  const moment = moments.find((one) => one.seq === seq)
  if (!moment) return null
  const { record, context, changed } = moment
  const named = moment.lists.map((places, i) => [lists[i], places.map((place) => parts[place])])
  return {
    seq,
    changed,
    record: parts[record],
    context:
      typeof context === 'number'
        ? parts[context]
        : Object.fromEntries(Object.entries(context).map(([key, place]) => [key, parts[place]])),
    ...Object.fromEntries(named),
  } as MomentView
}
