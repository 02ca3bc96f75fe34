import type { Delta } from './delta.js'

const open = '<think>'
const close = '</think>'

/**
 * Takes inline `<think>…</think>` out of streamed text. What could be the start of a tag is held back until it is
 * known, so that a tag may be cut anywhere. A tag in backticks is talk about the tag; a closing tag without an opening
 * one is text, because what came before it has been shown already.
 */
export function createThinkSplitter() {
  let inside = false
  /** The start of a tag, perhaps. */
  let held = ''
  /** White space before the first word: dropped when thoughts come first, shown otherwise. */
  let lead = ''
  let started = false
  let thought = false
  let lastChar = ''

  function shown(text: string): string {
    if (text === '') return ''
    lastChar = text.charAt(text.length - 1)
    if (started) return text
    if (text.trim() === '') {
      lead += text
      return ''
    }
    started = true
    return thought ? text.trimStart() : lead + text
  }

  function openingIn(text: string): number {
    let at = text.indexOf(open)
    while (at !== -1 && (at === 0 ? lastChar : text.charAt(at - 1)) === '`') at = text.indexOf(open, at + 1)
    return at
  }

  return {
    push(piece: string): Delta {
      if (started && !inside && held === '' && !piece.includes('<')) {
        if (piece !== '') lastChar = piece.charAt(piece.length - 1)
        return { text: piece, reasoning: '' }
      }
      const delta = { text: '', reasoning: '' }
      const take = (part: string) => {
        if (inside) delta.reasoning += part
        else delta.text += shown(part)
      }
      let rest = held + piece
      for (;;) {
        const at = inside ? rest.indexOf(close) : openingIn(rest)
        if (at === -1) break
        take(rest.slice(0, at))
        rest = rest.slice(at + (inside ? close : open).length)
        inside = !inside
        thought = true
        lastChar = ''
      }
      const whole = rest.length - startedTag(rest, inside ? close : open)
      take(rest.slice(0, whole))
      held = rest.slice(whole)
      return delta
    },

    /** What was held back, when nothing more comes. */
    flush(): Delta {
      const rest = held
      held = ''
      if (inside) return { text: '', reasoning: rest }
      const text = shown(rest)
      const blank = started || thought ? '' : lead
      lead = ''
      return { text: blank + text, reasoning: '' }
    },
  }
}

/** Length of the longest end of the text that a tag could begin with. */
function startedTag(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length
  }
  return 0
}
