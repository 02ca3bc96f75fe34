/** What is kept for viewers who come late, in characters; beyond it the oldest are forgotten. */
const maxKept = 16_000_000

/** What was sent so far. The first messages say what is shown: they stay, whatever is forgotten. */
export class SentMessages implements Iterable<string> {
  readonly #messages: string[] = []
  readonly #pinned: number
  #size = 0

  /** How many of the first messages stay. */
  constructor(pinned: number) {
    this.#pinned = pinned
  }

  add(message: string): void {
    this.#messages.push(message)
    this.#size += message.length
    while (this.#size > maxKept && this.#messages.length > this.#pinned + 1) {
      this.#size -= this.#messages.splice(this.#pinned, 1)[0]?.length ?? 0
    }
  }

  /** Nothing was sent yet. */
  clear(): void {
    this.#messages.length = 0
    this.#size = 0
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#messages[Symbol.iterator]()
  }
}
