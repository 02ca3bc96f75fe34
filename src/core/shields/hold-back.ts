import { endsInHalf } from '../../../guards/lib/words.js'
import { ConfigError } from '../base/errors.js'
import type { Screening } from '../../../machines/agent/screening.js'

export interface HoldBackOptions {
  /** Number of characters (UTF-16 units) to hold back before the first check, at least 1. Defaults to 200. */
  window?: number
  /**
   * Number of characters at the end of a checked text that are not released yet, from 0 to `window`. Forbidden text
   * that is at most one character longer than this number is never released in part. Defaults to `window`.
   */
  overlap?: number
  /** The earlier text that this text continues, as written and as released. Checks include the earlier text. */
  continues?: { text: string; released: string }
  /** Checks the text so far. Calls are sequential. */
  check: (text: string) => Promise<Screening>
  /** Receives each cleared piece in order. */
  release: (text: string) => void
}

export interface HoldBackResult {
  text: string
  /** The concatenated pieces that were released. */
  released: string
  /** Whether a check blocked the text or failed. */
  blocked: boolean
}

/**
 * Buffers streamed text and releases the text that its checks clear.
 * - The first check starts at the first character beyond the window, so buffering delays the first visible text by at
 *   most `window` characters and one check.
 * - Released text is part of a text that was allowed as a whole, and ends `overlap` characters before the end of that
 *   text.
 * - After a block, no more text is released.
 * - In a redacted text, the part before the first redaction is released immediately. The rest is released when the
 *   last `overlap` characters contain no redaction. If a redaction contradicts released text, no more text is
 *   released.
 * - Checks are at least a quarter of the window and a 64th of the text apart, so all checks together read a text
 *   about 70 times, regardless of its length.
 *
 * The end of a text is never released here. The caller checks the whole text and shows `remainder(cleared)`.
 */
export class HoldBack {
  readonly #window: number
  readonly #start: number
  readonly #overlap: number
  readonly #check: HoldBackOptions['check']
  readonly #release: HoldBackOptions['release']
  #text = ''
  #released = ''
  #checked = 0
  #checking: Promise<void> | undefined
  #blocked = false
  #closed = false

  /** Throws a ConfigError `invalid_option`. */
  constructor({ window = 200, overlap = window, continues, check, release }: HoldBackOptions) {
    if (!Number.isSafeInteger(window) || window < 1)
      throw new ConfigError('invalid_option', 'window must be a positive number of characters.', 'window')
    const rule = `overlap must be a whole number of characters between 0 and the window size (${window}).`
    if (!Number.isSafeInteger(overlap) || overlap < 0 || overlap > window)
      throw new ConfigError('invalid_option', rule, 'overlap')
    this.#window = window
    this.#overlap = overlap
    this.#text = continues?.text ?? ''
    this.#released = continues?.released ?? ''
    this.#start = this.#checked = this.#text.length
    this.#check = check
    this.#release = release
  }

  get released(): string {
    return this.#released
  }

  /** Whether a check blocked the text, in which case the request may be stopped. */
  get blocked(): boolean {
    return this.#blocked
  }

  write(delta: string): void {
    this.#text += delta
    if (this.#checking === undefined && this.#isDue()) this.#checking = this.#checkWhileDue()
  }

  /** Ends the text. Resolves after the last check; never rejects. */
  async finish(): Promise<HoldBackResult> {
    this.#closed = true
    await this.#checking
    return { text: this.#text, released: this.#released, blocked: this.#blocked }
  }

  /** The cleared text after the released part. Null if the released text differs and must be retracted. */
  remainder(cleared: string): string | null {
    return cleared.startsWith(this.#released) ? cleared.slice(this.#released.length) : null
  }

  #isDue(): boolean {
    const { length } = this.#text
    const stride = Math.max(Math.ceil(this.#window / 4), Math.floor(length / 64))
    return !this.#closed && length > this.#start + this.#window && length - this.#checked >= stride
  }

  async #checkWhileDue(): Promise<void> {
    try {
      while (this.#isDue()) {
        const text = this.#text
        this.#checked = text.length
        this.#applyVerdict(text, await this.#check(text))
      }
    } catch {
      this.#blocked = this.#closed = true
    } finally {
      this.#checking = undefined
    }
  }

  #applyVerdict(text: string, { action, content }: Screening): void {
    if (action === 'block') this.#blocked = true
    if (this.#blocked) this.#closed = true
    if (this.#closed) return
    const cleared = action === 'redact' ? content : text
    const next = cleared.slice(0, this.#getClearedLength(text, cleared))
    if (!cleared.startsWith(this.#released)) this.#closed = true
    else if (next.length > this.#released.length) {
      const piece = copyText(next.slice(this.#released.length))
      this.#released += piece
      this.#release(piece)
    }
  }

  /** The cleared text up to `overlap` characters before the end of the checked text. */
  #getClearedLength(text: string, cleared: string): number {
    const tail = text.slice(text.length - this.#overlap)
    const length = cleared.endsWith(tail)
      ? cleared.length - this.#overlap
      : Math.min(commonLength(text, cleared), text.length - this.#overlap)
    return endsInHalf(cleared.slice(0, length)) ? length - 1 : length
  }
}

/** Copies a slice, which would otherwise keep the whole checked text in memory. */
function copyText(slice: string): string {
  return ` ${slice}`.slice(1)
}

function commonLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}
