import { truncate } from '../../../guards/lib/words.js'

/** Control characters other than line feed and tab, invisible formatting, private use, and lone surrogates. */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu

/** Removes characters that are invisible or change the direction of text. */
export function stripInvisible(text: string): string {
  return text.replaceAll(invisible, '')
}

/** Untrusted text in quotes, on one line. */
export function quoteText(text: string): string {
  return `"${truncate(stripInvisible(text).replaceAll(/\s+/g, ' ').trim(), 300)}"`
}
