import type { MomentView, PackedMoments } from './protocol.js'

/** Parts of a moment that stand in many moments: a message, a value of the context. They are sent once. */
const listNames = ['transcript', 'guards', 'budget', 'pending', 'actions'] as const

/** Many moments in little room: a run of 1,000 records has the same messages again and again. */
export class MomentPacker {
  readonly #parts: unknown[] = []
  readonly #places = new Map<string, number>()
  /** The same object is the same part. */
  readonly #known = new WeakMap<object, number>()
  readonly #moments: PackedMoments['moments'] = []

  addMoment(moment: MomentView): void {
    const { seq, record, context, changed } = moment
    const isMap = typeof context === 'object' && context !== null && !Array.isArray(context)
    this.#moments.push({
      seq,
      changed,
      record: this.#placePart(record),
      context: isMap
        ? Object.fromEntries(Object.entries(context).map(([key, value]) => [key, this.#placePart(value)]))
        : this.#placePart(context),
      lists: listNames.map((name) => moment[name].map((item) => this.#placePart(item))),
    })
  }

  get packed(): PackedMoments {
    return { parts: this.#parts, moments: this.#moments }
  }

  #placePart(part: unknown): number {
    if (typeof part !== 'object' || part === null) return this.#placeByText(part)
    const place = this.#known.get(part) ?? this.#placeByText(part)
    this.#known.set(part, place)
    return place
  }

  #placeByText(part: unknown): number {
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
  const named = moment.lists.map((places, i) => [listNames[i], places.map((place) => parts[place])])
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
