import type { Interval } from './evaluation-report.js'
import type { CaseChange } from './summarize-cases.js'
import type { CaseVerdict } from './evaluation-report.js'
import { formatScore, formatSigned } from './format-report.js'

/**
 * SVG plots without a view box. Lengths are percentages, so a plot fills the available width while strokes keep
 * their thickness. Text is HTML.
 */

const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`

export interface IntervalRow {
  name: string
  range: Interval | null
  words: string
}

export function plotIntervals(
  rows: readonly IntervalRow[],
  { from, to, marks }: { from: number; to: number; marks: readonly number[] },
): Markup {
  const place = (value: number): string => percent((value - from) / (to - from || 1))
  return html`<div class="rows">
${rows.map(
  ({ name, range, words }) => html`<div class="row"><span class="name">${name}</span>
<svg class="axis" width="100%" height="22" aria-hidden="true">${marks.map(
    (mark) => html`<line class="grid" x1="${place(mark)}" x2="${place(mark)}" y1="0" y2="22"/>`,
  )}${range && drawInterval(range, place)}</svg>
<span class="words">${words}</span></div>`,
)}
</div>
<div class="row scale"><span class="name"></span><span class="marks">${marks.map(
    (mark) => html`<span>${mark}</span>`,
  )}</span><span class="words"></span></div>`
}

const drawInterval = ({ value, low, high }: Interval, place: (value: number) => string): Markup =>
  html`<line class="range" x1="${place(low)}" x2="${place(high)}" y1="11" y2="11"/><circle class="dot" cx="${place(value)}" cy="11" r="5"/>`

export function plotHistogram(
  values: readonly number[],
  { from, to, bins, format }: { from: number; to: number; bins: number; format: (value: number) => string },
): Markup {
  const counts = Array.from({ length: bins }, () => 0)
  const size = (to - from) / bins || 1
  for (const value of values) {
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((value - from) / size)))
    counts[bin] = (counts[bin] ?? 0) + 1
  }
  const most = Math.max(1, ...counts)
  const height = 110
  return html`<svg class="bars" width="100%" height="${height + 18}" role="img" aria-label="${`${values.length} values, most in one bar: ${most}`}">
${counts.map((count, i) => {
  const tall = count === 0 ? 0 : Math.max(2, (count / most) * height)
  const span = `${format(from + i * size)} to ${format(from + (i + 1) * size)}: ${count}`
  const middle = percent((i + 0.5) / bins)
  return html`<rect class="bar" x="${percent((i + 0.06) / bins)}" width="${percent(0.88 / bins)}" y="${height + 16 - tall}" height="${tall}" rx="2"><title>${span}</title></rect>${
    count > 0 && html`<text x="${middle}" y="${height + 11 - tall}" text-anchor="middle">${count}</text>`
  }`
})}<line class="base" x1="0" x2="100%" y1="${height + 16.5}" y2="${height + 16.5}"/></svg>
<div class="marks"><span>${format(from)}</span><span>${format(from + (to - from) / 2)}</span><span>${format(to)}</span></div>`
}

export function plotVerdicts(verdicts: Record<CaseVerdict, number>): Markup {
  const parts = Object.entries(verdicts).filter(([, count]) => count > 0)
  const total = parts.reduce((sum, [, count]) => sum + count, 0) || 1
  let before = 0
  const drawn = parts.map(([verdict, count]) => {
    const [x, width] = [before / total, count / total]
    before += count
    return html`<rect class="fill-${verdict}" x="${percent(x)}" width="${percent(width)}" y="0" height="16"><title>${verdict} ${count}</title></rect>`
  })
  return html`<svg class="whole" width="100%" height="16" aria-hidden="true">${drawn}</svg>
<p class="legend">${Object.entries(verdicts).map(
    ([verdict, count]) =>
      html`<span><svg width="10" height="10" aria-hidden="true"><rect class="fill-${verdict}" width="10" height="10" rx="2"/></svg> ${verdict} <b>${count}</b></span> `,
  )}</p>`
}

/** A diverging bar per case, from the worst to the best change. */
export function plotChanges(changes: readonly CaseChange[]): Markup {
  const most = Math.max(...changes.map(({ difference }) => Math.abs(difference)), 0.01)
  return html`<div class="rows">${changes.map(({ id, before, now, difference }) => {
    const half = Math.abs(difference) / most / 2
    const x = difference < 0 ? 0.5 - half : 0.5
    return html`<div class="row"><span class="name" title="${id}">${id}</span>
<svg class="axis" width="100%" height="22" aria-hidden="true"><rect class="${difference < 0 ? 'worse' : 'better'}" x="${percent(x)}" width="${percent(half)}" y="5" height="12" rx="2"/><line class="base" x1="50%" x2="50%" y1="0" y2="22"/></svg>
<span class="words">${formatSigned(difference)} (${formatScore(before)} → ${formatScore(now)})</span></div>`
  })}</div>`
}

/** Safe HTML. Text interpolated into it is escaped. */
export interface Markup {
  readonly html: string
}

type Piece = Markup | string | number | null | false | readonly Piece[]

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for HTML and quoted attributes and drops control characters. */
const escapeHtml = (text: string): string =>
  text
    // oxlint-disable-next-line no-control-regex -- drops these characters
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '')
    .replaceAll(/[&<>"']/g, (letter) => escapes[letter] ?? letter)

export function html(strings: TemplateStringsArray, ...values: readonly Piece[]): Markup {
  return { html: strings.reduce((text, part, i) => text + toHtml(values[i - 1] ?? null) + part) }
}

function toHtml(piece: Piece): string {
  if (piece === null || piece === false) return ''
  if (Array.isArray(piece)) return (piece as readonly Piece[]).map(toHtml).join('')
  return typeof piece === 'object' ? (piece as Markup).html : escapeHtml(String(piece))
}
