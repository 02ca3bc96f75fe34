/** A sorted list in chunks. Adding or removing an item touches at most one chunk, regardless of size. */
export class OrderedList<Item> {
  readonly #compare: (a: Item, b: Item) => number
  readonly #chunks: Item[][] = []

  /** Items that compare equal are stored only once. */
  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare
  }

  get first(): Item | undefined {
    return this.#chunks[0]?.[0]
  }

  add(item: Item): void {
    const at = Math.min(this.#findChunk(item), Math.max(0, this.#chunks.length - 1))
    const chunk = this.#chunks[at]
    if (chunk === undefined) {
      this.#chunks.push([item])
      return
    }
    const place = this.#findPlace(chunk, item)
    const isThere = place < chunk.length && this.#compare(chunk[place] as Item, item) === 0
    chunk.splice(place, isThere ? 1 : 0, item)
    if (chunk.length > mostInChunk) this.#chunks.splice(at + 1, 0, chunk.splice(mostInChunk / 2))
  }

  delete(item: Item): void {
    const at = this.#findChunk(item)
    const chunk = this.#chunks[at]
    if (chunk === undefined) return
    const place = this.#findPlace(chunk, item)
    if (place < chunk.length && this.#compare(chunk[place] as Item, item) === 0) chunk.splice(place, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
  }

  *from(item: Item): Generator<Item, undefined> {
    const start = this.#findChunk(item)
    for (let at = start; at < this.#chunks.length; at += 1) {
      const chunk = this.#chunks[at] as Item[]
      for (let i = at === start ? this.#findPlace(chunk, item) : 0; i < chunk.length; i += 1)
        yield chunk[i] as Item
    }
  }

  /** Index of the first chunk whose last item is not before `item`. */
  #findChunk(item: Item): number {
    return this.#search(this.#chunks.length, (i) => this.#compare(this.#chunks[i]?.at(-1) as Item, item) < 0)
  }

  #findPlace(chunk: readonly Item[], item: Item): number {
    return this.#search(chunk.length, (i) => this.#compare(chunk[i] as Item, item) < 0)
  }

  #search(count: number, isBefore: (i: number) => boolean): number {
    let [low, high] = [0, count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (isBefore(middle)) low = middle + 1
      else high = middle
    }
    return low
  }
}

const mostInChunk = 512

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
