import type { JsonObject } from '../../../../machines/agent/json.js'
import { asText } from '../../base/values.js'
import type { Delta } from './answer-reader.js'

/** Whether an item is a thought. Servers for open models put thoughts into messages. */
export function isThought({ type }: JsonObject): boolean {
  return ['reasoning_text', 'reasoning', 'thinking', 'summary_text'].includes(asText(type))
}

/** DeepSeek-R1 and Qwen3, Claude prompts, Gemini's compatible API, Reka, Magistral, Seed-OSS, Kimi-VL. */
const openTags = '<think> <thinking> <thought> <reasoning> [THINK] <seed:think> ◁think▷'.split(' ')

/** A single expression, because searching for each tag would take quadratic time. */
const openTag = new RegExp(openTags.map((tag) => tag.replaceAll(/[[\]]/g, String.raw`\$&`)).join('|'), 'g')

export const mayHaveTag = (text: string): boolean =>
  text.includes('<') || text.includes('[') || text.includes('◁')

/**
 * Separates thoughts such as `<think>…</think>`. Holds back possible starts of tags. Tags in backticks are text, and
 * so is a closing tag without an opening tag, because the text before it is already visible.
 */
export class ThinkSplitter {
  #closeTag: string | null = null
  #held = ''
  #lead = ''
  #started = false
  #thought = false
  #lastChar = ''

  push(piece: string): Delta {
    if (this.#started && this.#closeTag === null && this.#held === '' && !mayHaveTag(piece)) {
      if (piece !== '') this.#lastChar = piece.charAt(piece.length - 1)
      return { text: piece, reasoning: '' }
    }
    const delta = { text: '', reasoning: '' }
    let rest = this.#held + piece
    for (;;) {
      const [at, tag] = this.#findTag(rest)
      if (at === -1) break
      this.#take(rest.slice(0, at), delta)
      rest = rest.slice(at + tag.length)
      this.#closeTag = this.#closeTag === null ? `${tag.charAt(0)}/${tag.slice(1)}` : null
      this.#thought = true
      this.#lastChar = ''
    }
    const whole = rest.length - countTagStart(rest, this.#closeTag === null ? openTags : [this.#closeTag])
    this.#take(rest.slice(0, whole), delta)
    this.#held = rest.slice(whole)
    return delta
  }

  flush(): Delta {
    const rest = this.#held
    this.#held = ''
    if (this.#closeTag !== null) return { text: '', reasoning: rest }
    const text = this.#takeText(rest)
    const blank = this.#started || this.#thought ? '' : this.#lead
    this.#lead = ''
    return { text: blank + text, reasoning: '' }
  }

  #take(part: string, delta: { text: string; reasoning: string }): void {
    if (this.#closeTag !== null) delta.reasoning += part
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

  #findTag(text: string): [at: number, tag: string] {
    if (this.#closeTag !== null) return [text.indexOf(this.#closeTag), this.#closeTag]
    for (const { 0: tag, index } of text.matchAll(openTag))
      if ((index === 0 ? this.#lastChar : text.charAt(index - 1)) !== '`') return [index, tag]
    return [-1, '']
  }
}

function countTagStart(text: string, tags: readonly string[]): number {
  const longest = Math.max(...tags.map((tag) => tag.length)) - 1
  for (let length = Math.min(longest, text.length); length > 0; length -= 1) {
    const end = text.slice(-length)
    if (tags.some((tag) => tag.length > length && tag.startsWith(end))) return length
  }
  return 0
}
