/** Widths of Helvetica's characters in thousandths of the font's size, by kind: a little more than they are. */
const widthByKind: readonly (readonly [RegExp, number])[] = [
  [/[ijl.,:;|!'`]/, 270],
  [/[ ftI()[\]/\\r-]/, 340],
  [/[mw%@—]/, 860],
  [/[MW…→←]/, 980],
  [/[A-Z&_]/, 720],
  [/[\u0020-\u024f·]/, 570],
]

/** How wide a text is, about, in pixels: wide enough for Arial and its like. */
export function measureText(text: string, size: number, isBold = false): number {
  const units = Array.from(text).reduce(
    (sum, character) => sum + (widthByKind.find(([kind]) => kind.test(character))?.[1] ?? 1000),
    0,
  )
  return ((units * size) / 1000) * (isBold ? 1.06 : 1)
}

/** The pieces in lines of this width at most; a piece that is wider has a line of its own. */
export function wrapPieces(
  pieces: readonly string[],
  separator: string,
  width: number,
  size: number,
): string[] {
  const lines: string[] = []
  for (const piece of pieces) {
    const last = lines.at(-1)
    const joined = last === undefined ? piece : last + separator + piece
    if (last !== undefined && measureText(joined, size) <= width) lines[lines.length - 1] = joined
    else lines.push(piece)
  }
  return lines
}

/** The words in lines of this width at most. */
export function wrapWords(text: string, width: number, size: number): string[] {
  return wrapPieces(text.split(/\s+/).filter(Boolean), ' ', width, size)
}

/** The text, or as much of its beginning as there is room for. */
export function cutToWidth(text: string, width: number, size: number, isBold = false): string {
  if (measureText(text, size, isBold) <= width) return text
  const room = width - measureText('…', size, isBold)
  let cut = ''
  let used = 0
  for (const character of text) {
    used += measureText(character, size, isBold)
    if (used > room) break
    cut += character
  }
  return `${cut}…`
}
