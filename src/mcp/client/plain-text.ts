/** Control characters other than line feed and tab, invisible formatting, private use, and lone surrogates. */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu

/** Removes characters that are invisible or change the direction of text. */
export function stripInvisible(text: string): string {
  return text.replaceAll(invisible, '')
}

/** Cuts a text to at most `limit` characters. Never splits a surrogate pair. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text
  const end = text.slice(0, limit - 1)
  return `${/[\uD800-\uDBFF]$/.test(end) ? end.slice(0, -1) : end}…`
}

/** Untrusted text in quotes, on one line. */
export function quoteText(text: string): string {
  return `"${cutText(stripInvisible(text).replaceAll(/\s+/g, ' ').trim(), 300)}"`
}
