/** Control characters other than line feed and tab, invisible formatting, private use, and halves of pairs. */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu

/** A text that shows all that is in it: nothing of it is invisible, or turns what follows around. */
export function stripInvisible(text: string): string {
  return text.replaceAll(invisible, '')
}

/** At most `limit` characters; never half a surrogate pair. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text
  const end = text.slice(0, limit - 1)
  return `${/[\uD800-\uDBFF]$/.test(end) ? end.slice(0, -1) : end}…`
}

/** Foreign text in quotes, on one line. */
export function quoteText(text: string): string {
  return `"${cutText(stripInvisible(text).replaceAll(/\s+/g, ' ').trim(), 300)}"`
}
