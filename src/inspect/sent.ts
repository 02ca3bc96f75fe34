/** What is kept for viewers who come late, in characters; beyond it the oldest are forgotten. */
const maxKept = 16_000_000

/** What was sent so far. The first message describes the machine: it stays, whatever is forgotten. */
export class SentMessages implements Iterable<string> {
  readonly #messages: string[] = []
  #size = 0

  add(message: string): void {
    this.#messages.push(message)
    this.#size += message.length
    while (this.#size > maxKept && this.#messages.length > 2) {
      this.#size -= this.#messages.splice(1, 1)[0]?.length ?? 0
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
