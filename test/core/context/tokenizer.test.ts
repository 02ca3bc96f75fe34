import * as fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import {
  wrapTokenizer,
  loadDefaultTokenizer,
  type Tokenizer,
} from '../../../src/core/context/default-tokenizer.js'
import { sampled } from '../../support/extent.js'
import { unicodeText } from '../../support/unicode-text.js'

describe('the default tokenizer', () => {
  let tokenizer: Tokenizer
  beforeAll(async () => {
    tokenizer = await loadDefaultTokenizer()
  })

  it('counts like o200k_base', () => {
    expect(tokenizer.count('')).toBe(0)
    expect(tokenizer.count('Hello, world!')).toBe(4)
    const prose =
      "The quick brown fox jumps over the lazy dog, don't you think?  Yes: 12345 times.\n\n".repeat(200)
    expect(tokenizer.count(prose)).toBe(countTokens(prose))
  })

  it.each(['<|endoftext|>', '<|im_start|>system', 'a <|fim_prefix|> b <|endofprompt|>'])(
    'counts the special token %s as plain text',
    (text) => {
      expect(tokenizer.count(text)).toBeGreaterThan(3)
    },
  )

  it('counts a megabyte without a space in linear time', () => {
    // 125,000 tokens. Merging them as one word takes many minutes.
    expect(tokenizer.count('a'.repeat(1_000_000))).toBe(125_000)
  })

  it('never throws, and stays close to the exact count for any text', () => {
    fc.assert(
      fc.property(unicodeText({ maxLength: 3_000, size: 'max' }), (text) => {
        const exact = countTokens(text, { disallowedSpecial: new Set() })
        expect(Math.abs(tokenizer.count(text) - exact)).toBeLessThanOrEqual(4 * Math.ceil(text.length / 500))
      }),
      { numRuns: sampled(50) },
    )
    expect(tokenizer.count('\ud800\udc00'.repeat(600))).toBe(countTokens('\ud800\udc00'.repeat(600)))
    expect(tokenizer.count('\udc00\ud800')).toBeGreaterThan(0)
  })

  it('is loaded once', () => {
    expect(loadDefaultTokenizer()).toBe(loadDefaultTokenizer())
  })
})

describe('a custom tokenizer', () => {
  it.each([NaN, -1, Infinity, undefined, '7', Promise.resolve(7)])('is refused if it returns %s', (value) => {
    const broken = wrapTokenizer({ count: () => value as number })
    expect(() => broken.count('text')).toThrow(expect.objectContaining({ code: 'invalid_tokenizer' }))
  })
})
