import type { MomentView, PackedMoments } from './protocol.js'

/** Lists of a moment whose items repeat in many moments, such as messages: each item is sent once. */
const listNames = ['transcript', 'guards', 'budget', 'pending', 'actions'] as const

/** Packs many moments: repeated parts, such as messages, are stored once. */
export class MomentPacker {
  readonly #parts: unknown[] = []
  readonly #places = new Map<string, number>()
  /** Parts by object identity. */
  readonly #known = new WeakMap<object, number>()
  readonly #moments: PackedMoments['moments'] = []

  addMoment(moment: MomentView): void {
    const { seq, record, context, changed, instructions } = moment
    const isMap = typeof context === 'object' && context !== null && !Array.isArray(context)
    this.#moments.push({
      seq,
      changed,
      record: this.#placePart(record),
      instructions: this.#placePart(instructions),
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

/** Unpacks one moment; null when it is not in the pack. */
export function unpackMoment({ parts, moments }: PackedMoments, seq: number): MomentView | null {
  const moment = moments.find((one) => one.seq === seq)
  if (!moment) return null
  const { record, context, changed, instructions } = moment
  const named = moment.lists.map((places, i) => [listNames[i], places.map((place) => parts[place])])
  return {
    seq,
    changed,
    record: parts[record],
    instructions: parts[instructions],
    context:
      typeof context === 'number'
        ? parts[context]
        : Object.fromEntries(Object.entries(context).map(([key, place]) => [key, parts[place]])),
    ...Object.fromEntries(named),
  } as MomentView
}
