/** Lets at most so many pieces of work run at once; the others wait, first come, first served. */
export class WorkSlots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1
    else {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
      })
    }
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      // The slot goes straight to the next in line, so that later callers do not overtake.
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
