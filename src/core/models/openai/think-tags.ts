import type { Delta } from './delta.js'

const openTag = '<think>'
const closeTag = '</think>'

/**
 * Takes inline `<think>…</think>` out of streamed text. What could be the start of a tag is held back until it is
 * known, so that a tag may be cut anywhere. A tag in backticks is talk about the tag; a closing tag without an opening
 * one is text, because what came before it has been shown already.
 */
export class ThinkSplitter {
  #inside = false
  /** The start of a tag, perhaps. */
  #held = ''
  /** White space before the first word: dropped when thoughts come first, shown otherwise. */
  #lead = ''
  #started = false
  #thought = false
  #lastChar = ''

  push(piece: string): Delta {
    if (this.#started && !this.#inside && this.#held === '' && !piece.includes('<')) {
      if (piece !== '') this.#lastChar = piece.charAt(piece.length - 1)
      return { text: piece, reasoning: '' }
    }
    const delta = { text: '', reasoning: '' }
    let rest = this.#held + piece
    for (;;) {
      const at = this.#inside ? rest.indexOf(closeTag) : this.#findOpening(rest)
      if (at === -1) break
      this.#take(rest.slice(0, at), delta)
      rest = rest.slice(at + (this.#inside ? closeTag : openTag).length)
      this.#inside = !this.#inside
      this.#thought = true
      this.#lastChar = ''
    }
    const whole = rest.length - countTagStart(rest, this.#inside ? closeTag : openTag)
    this.#take(rest.slice(0, whole), delta)
    this.#held = rest.slice(whole)
    return delta
  }

  /** What was held back, when nothing more comes. */
  flush(): Delta {
    const rest = this.#held
    this.#held = ''
    if (this.#inside) return { text: '', reasoning: rest }
    const text = this.#takeText(rest)
    const blank = this.#started || this.#thought ? '' : this.#lead
    this.#lead = ''
    return { text: blank + text, reasoning: '' }
  }

  #take(part: string, delta: { text: string; reasoning: string }): void {
    if (this.#inside) delta.reasoning += part
    else delta.text += this.#takeText(part)
  }

  #takeText(text: string): string {
    if (text === '') return ''
    this.#lastChar = text.charAt(text.length - 1)
    if (this.#started) return text
    if (text.trim() === '') {
      this.#lead += text
      return ''
    }
    this.#started = true
    return this.#thought ? text.trimStart() : this.#lead + text
  }

  #findOpening(text: string): number {
    let at = text.indexOf(openTag)
    while (at !== -1 && (at === 0 ? this.#lastChar : text.charAt(at - 1)) === '`')
      at = text.indexOf(openTag, at + 1)
    return at
  }
}

/** Length of the longest end of the text that a tag could begin with. */
function countTagStart(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length
  }
  return 0
}
