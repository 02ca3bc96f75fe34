/** The end of a stream of UTF-8 text. */
export class TextTail {
  readonly #limit: number
  readonly #decoder = new TextDecoder()
  #text = ''

  /** `limit` in characters. */
  constructor(limit: number) {
    this.#limit = limit
  }

  add(chunk: Uint8Array): void {
    this.#text = (this.#text + this.#decoder.decode(chunk, { stream: true })).slice(-this.#limit)
  }

  get text(): string {
    return this.#text
  }
}
