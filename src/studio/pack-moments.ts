import type { MomentView, PackedMoments } from './protocol.js'

/** Lists whose items repeat in many moments. Each item is sent once. */
const listNames = ['transcript', 'guards', 'budget', 'pending', 'grants', 'actions'] as const

/** A complete list is packed at this interval, so that unpacking a moment does not need all earlier ones. */
const wholeEvery = 64

/** Repeated parts are stored once, and lists as changes to the previous moment. */
export class MomentPacker {
  readonly #parts: unknown[] = []
  readonly #places = new Map<string, number>()
  readonly #known = new WeakMap<object, number>()
  readonly #moments: PackedMoments['moments'] = []
  #lists: number[][] = []

  addMoment(moment: MomentView): void {
    const { seq, earlier, record, context, changed, instructions } = moment
    const isMap = typeof context === 'object' && context !== null && !Array.isArray(context)
    this.#moments.push({
      seq,
      earlier,
      changed,
      record: this.#placePart(record),
      instructions: this.#placePart(instructions),
      context: isMap
        ? Object.fromEntries(Object.entries(context).map(([key, value]) => [key, this.#placePart(value)]))
        : this.#placePart(context),
      lists: this.#packLists(listNames.map((name) => moment[name].map((item) => this.#placePart(item)))),
    })
  }

  #packLists(lists: number[][]): number[][] {
    const before = this.#moments.length % wholeEvery === 0 ? [] : this.#lists
    this.#lists = lists
    return lists.map((places, i) => {
      const other = before[i] ?? []
      let shared = 0
      while (shared < places.length && places[shared] === other[shared]) shared += 1
      return [shared, ...places.slice(shared)]
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

/** Null if the moment is not in the pack. */
export function unpackMoment({ parts, moments }: PackedMoments, seq: number): MomentView | null {
  const at = moments.findIndex((one) => one.seq === seq)
  const moment = moments[at]
  if (!moment) return null
  const { earlier, record, context, changed, instructions } = moment
  const named = listNames.map((name, i) => [name, unpackList(moments, at, i).map((place) => parts[place])])
  return {
    seq,
    earlier,
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

/** Joins the items kept from earlier moments, from the end of the list on. */
function unpackList(moments: PackedMoments['moments'], at: number, index: number): number[] {
  const pieces: number[][] = []
  let end = Infinity
  for (let i = at; end > 0; i -= 1) {
    const packed = moments[i]?.lists[index] ?? []
    const shared = packed[0] ?? 0
    if (shared >= end) continue
    pieces.unshift(packed.slice(1, 1 + end - shared))
    end = shared
  }
  return pieces.flat()
}
