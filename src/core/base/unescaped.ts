/**
 * A text with its percent escapes read; as it stands where one of them is none.
 *
 * @example unescaped('a%20b') // 'a b'
 */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
