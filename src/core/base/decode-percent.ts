/** A text with its percent escapes read, `a%20b` as `a b`; as it stands where one of them is none. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
