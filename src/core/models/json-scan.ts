/** Scans JSON text piece by piece. */
export class JsonScan {
  depth = 0
  deepest = 0
  /** Whether the text ends inside a string. */
  isText = false
  #isEscape = false
  /** Whether the last bracket closed the outermost value. */
  isWhole = false
  /** The last non-blank character, or ''. */
  last = ''

  read(piece: string): this {
    for (let i = 0; i < piece.length; i += 1) {
      const char = piece.charAt(i)
      if (char > ' ') this.last = char
      if (this.#isEscape) this.#isEscape = false
      else if (char === '"') this.isText = !this.isText
      else if (this.isText) this.#isEscape = char === '\\'
      else if (char === '{' || char === '[') this.deepest = Math.max(this.deepest, ++this.depth)
      else if (char === '}' || char === ']') this.isWhole = --this.depth === 0
    }
    return this
  }
}
