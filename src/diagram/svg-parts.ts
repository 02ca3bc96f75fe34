import { palette } from './look.js'

export const fontSizes = { title: 22, name: 16, words: 14 }
export const lineHeight = 19

export interface LabelOptions {
  color?: string
  size?: number
  bold?: boolean
  anchor?: 'middle' | 'end'
  width: number
}

export function drawLabel(words: string, x: number, y: number, options: LabelOptions): string {
  const { color = palette.text, size = fontSizes.words, bold = false, anchor, width } = options
  const font = `font-family="Helvetica,Arial,sans-serif" font-size="${size}"${bold ? ' font-weight="bold"' : ''}`
  const at = anchor ? ` text-anchor="${anchor}"` : ''
  return `<text x="${x}" y="${y}" fill="${color}" ${font}${at}>${escapeXml(cutToWidth(words, width, size, bold))}</text>`
}

export function drawPath(d: string, color: string, width: number): string {
  return `<path d="${d}" fill="none" stroke="${color}" stroke-width="${width}"/>`
}

export function drawDot(x: number, y: number, color: string, radius: number): string {
  return `<circle cx="${x}" cy="${y}" r="${radius}" fill="${color}"/>`
}

/** Groups the parts of one state, with its path as `data-state` and its description as the tooltip. */
export function drawStateGroup(
  { id, description }: { id: string; description: string },
  kind: string,
  parts: readonly string[],
): string[] {
  const title = description === '' ? [] : [`<title>${escapeXml(description)}</title>`]
  return [`<g class="${kind}" data-state="${escapeXml(id)}">`, ...title, ...parts, '</g>']
}

export function formatTransitions(ids: readonly string[]): string {
  return `data-transition="${ids.map(escapeXml).join('&#10;')}"`
}

export function formatWay(way: { from: string; to: string; causes: readonly (readonly string[])[] }): string {
  return `data-from="${escapeXml(way.from)}" data-to="${escapeXml(way.to)}" ${formatTransitions([...new Set(way.causes.flat())])}`
}

export const initialMarkerHeight = 26

export function drawInitialMarker(x: number, y: number): string {
  const head = `<path d="M${x},${y}l-4.5,-8h9z" fill="${palette.text}"/>`
  return drawDot(x, y - 20, palette.text, 5) + drawPath(`M${x},${y - 16}V${y - 6}`, palette.text, 1.6) + head
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for XML and HTML-like labels and drops characters that XML forbids. */
export function escapeXml(plain: string): string {
  return plain
    .replaceAll(/[^\P{Cc}\t\n\r]|\p{Cs}|[\ufffe\uffff]/gu, '')
    .replaceAll(/[&<>"]/g, (character) => escapes[character] ?? '')
}

export type Attributes = Readonly<Record<string, string | number>>

export function formatAttributes(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escapeXml(`${value}`)}"`)
    .join('')
}

/** Approximate Helvetica widths in thousandths of the font size, rounded up. */
const widthByKind: readonly (readonly [RegExp, number])[] = [
  [/[ijl.,:;|!'`]/, 270],
  [/[ ftI()[\]/\\r-]/, 340],
  [/[mw%@—]/, 860],
  [/[MW…→←]/, 980],
  [/[A-Z&_]/, 720],
  [/[\u0020-\u024f·]/, 570],
]

/** Estimated text width in pixels for Arial-like fonts. */
export function measureText(text: string, size: number, isBold = false): number {
  const units = Array.from(text).reduce(
    (sum, character) => sum + (widthByKind.find(([kind]) => kind.test(character))?.[1] ?? 1000),
    0,
  )
  return ((units * size) / 1000) * (isBold ? 1.06 : 1)
}

/** Breaks lines at a width in pixels at the font size, or without a size in characters. */
export function wrapPieces(
  pieces: readonly string[],
  separator: string,
  width: number,
  size?: number,
): string[] {
  const measure = (line: string): number => (size === undefined ? line.length : measureText(line, size))
  const lines: string[] = []
  for (const piece of pieces) {
    const last = lines.at(-1)
    const joined = last === undefined ? piece : last + separator + piece
    if (last !== undefined && measure(joined) <= width) lines[lines.length - 1] = joined
    else lines.push(piece)
  }
  return lines
}

export function wrapWords(text: string, width: number, size?: number): string[] {
  return wrapPieces(text.split(/\s+/).filter(Boolean), ' ', width, size)
}

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
