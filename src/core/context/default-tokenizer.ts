import type * as O200k from 'gpt-tokenizer/encoding/o200k_base'
import { endsInHalf } from '../../../guards/lib/words.js'
import { readTokens } from '../base/values.js'
import { StatewrightError } from '../base/errors.js'
import { loadOnce, loadPeer } from '../base/platform.js'

/**
 * Counts tokens for a model.
 * @example createAgent({ model, context: { window: 32_000 }, tokenizer: { count: (text) => Math.ceil(text.length / 4) } })
 */
export interface Tokenizer {
  /** The number of tokens in a text. Names of special tokens (`<|endoftext|>`) count as plain text. */
  count(text: string): number
}

/** Number of characters to count at once. The time to merge a long word without breaks is quadratic. */
const sliceLength = 512

/**
 * `o200k_base` of gpt-tokenizer, OpenAI's encoding since GPT-4o and a good estimate for other models.
 * @throws {StatewrightError} `missing_package`
 */
export const loadDefaultTokenizer = loadOnce(async (): Promise<Tokenizer> => {
  const { countTokens } = await loadPeer<typeof O200k>(
    'gpt-tokenizer/encoding/o200k_base',
    'context.window without a custom tokenizer',
  )
  const asPlainText = { disallowedSpecial: new Set<string>() }
  return createSlicedTokenizer((text) => countTokens(text, asPlainText))
})

/** Wraps a custom tokenizer and validates its counts, because NaN would let every request pass. */
export function wrapTokenizer(tokenizer: Tokenizer): Tokenizer {
  return {
    count: (text) => {
      const tokens: unknown = tokenizer.count(text)
      const counted = readTokens(tokens)
      if (counted !== null) return counted
      throw new StatewrightError(
        'invalid_tokenizer',
        `tokenizer.count returned ${String(tokens)}. It must synchronously return the number of tokens, 0 or more.`,
        'tokenizer',
      )
    },
  }
}

/** Ends slices before a space if possible, because no token extends across that boundary. */
function createSlicedTokenizer(count: (text: string) => number): Tokenizer {
  return {
    count: (text) => {
      let tokens = 0
      for (let at = 0; at < text.length; ) {
        const slice = text.slice(at, at + sliceLength)
        const isLast = at + slice.length === text.length
        const space = isLast ? -1 : slice.lastIndexOf(' ')
        const end = !isLast && endsInHalf(slice) ? slice.length - 1 : slice.length
        const whole = slice.slice(0, space > 0 ? space : end)
        tokens += count(whole)
        at += whole.length
      }
      return tokens
    },
  }
}
