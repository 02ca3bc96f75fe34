import { escapeXml } from './state-card.js'
import { cutToWidth } from './measure-text.js'
import { palette } from './theme.js'

export const fontSizes = { title: 22, name: 16, words: 14 }
export const lineHeight = 19

export interface LabelOptions {
  color?: string
  size?: number
  bold?: boolean
  /** What of it is at `x`. Default: its start. */
  anchor?: 'middle' | 'end'
  /** What is longer is cut. */
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

/** The parts of one state, with its path for programs; its description is the tooltip. */
export function drawStateGroup(
  { id, description }: { id: string; description: string },
  kind: string,
  parts: readonly string[],
): string[] {
  const title = description === '' ? [] : [`<title>${escapeXml(description)}</title>`]
  return [`<g class="${kind}" data-state="${escapeXml(id)}">`, ...title, ...parts, '</g>']
}

/** The ids of transitions as an attribute, one a line. */
export function formatTransitions(ids: readonly string[]): string {
  return `data-transition="${ids.map(escapeXml).join('&#10;')}"`
}

/** Where a way leads from and to, by paths, and the transitions that it stands for. */
export function formatWay(way: { from: string; to: string; causes: readonly (readonly string[])[] }): string {
  return `data-from="${escapeXml(way.from)}" data-to="${escapeXml(way.to)}" ${formatTransitions([...new Set(way.causes.flat())])}`
}

/** Where a machine begins: a dot above the state that it enters. */
export function drawInitialMarker(x: number, y: number): string {
  const head = `<path d="M${x},${y}l-4.5,-8h9z" fill="${palette.text}"/>`
  return drawDot(x, y - 20, palette.text, 5) + drawPath(`M${x},${y - 16}V${y - 6}`, palette.text, 1.6) + head
}
