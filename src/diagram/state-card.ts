import type { ChartState, ChartTransition, TransitionCounts } from './chart.js'
import { isMainTransition, type Look, palette, toneColors } from './look.js'
import { escapeXml } from './svg-parts.js'

/**
 * Renders a state as an HTML-like Graphviz table: heading, invoked actors, and one row per transition. Edges
 * start at rows, so they need no labels.
 */
export class CardRenderer {
  readonly #look: Look
  readonly #counts: TransitionCounts | undefined
  readonly #order: ReadonlyMap<string, number> | undefined

  /** With `order`, row cells link to `#t3` by transition index. */
  constructor(look: Look, counts?: TransitionCounts, order?: ReadonlyMap<string, number>) {
    this.#look = look
    this.#counts = counts
    this.#order = order
  }

  #countColumns(state: ChartState): number {
    return 2 + (hasEvents(state) ? 1 : 0) + (this.#counts ? 1 : 0)
  }

  drawAtomic(state: ChartState, isRegion = false): string {
    if (state.type === 'history')
      return drawPill(
        `${toBold(state.history === 'deep' ? 'H*' : 'H')} ${escapeXml(state.key)}`,
        palette.quiet,
      )
    const tone = state.type === 'final' ? toneColors[this.#look.tones[state.id] ?? 'neutral'] : undefined
    const rows = this.#drawRows(state)
    return drawTable(
      {
        border: tone ? 2 : 1,
        style: isRegion ? 'rounded,dashed' : 'rounded',
        color: tone?.line ?? palette.line,
        bgcolor: tone?.fill ?? palette.card,
      },
      `${drawHead(state, { width: 46, colspan: this.#countColumns(state) })}${rows === '' ? '' : `<hr/>${rows}`}`,
    )
  }

  drawHeading(state: ChartState, size: number): string {
    const space = '<tr><td height="8"></td></tr>'
    return drawTable(
      { border: 0 },
      `${drawHead(state, { width: 72, size, colspan: this.#countColumns(state) })}${this.#drawRows(state)}${space}`,
    )
  }

  #drawRows(state: ChartState): string {
    return state.transitions.map((transition, index) => this.#drawRow(state, transition, index)).join('')
  }

  #drawRow(state: ChartState, transition: ChartTransition, index: number): string {
    const { on, when, targets } = transition
    const main = !this.#counts && isMainTransition(this.#look, transition)
    const count = this.#counts?.get(transition.id) ?? 0
    const place = this.#order?.get(transition.id)
    const fill = {
      ...(this.#counts && count === 0 && { bgcolor: palette.missedFill }),
      ...(place !== undefined && { href: `#t${place}` }),
    }
    const guard = toColored(main ? palette.main : palette.text, escapeXml(`[${when}]`) + gap)
    const condition = when === null ? (on === '' ? 'always' : '') : when === 'else' ? 'else' : null
    const to = targets.map((id) => this.#drawTarget(id, state, main)).join(' ')
    const cells = [
      // Each cell holds text of one kind, because only then do all cells of a row share a baseline.
      ...(hasEvents(state) ? [drawCell(toBold(escapeXml(on) + gap), fill)] : []),
      drawCell(condition === null ? guard : toColored(palette.quiet, condition + gap), fill),
      drawCell(to === '' ? toColored(palette.quiet, 'stays') : to, fill),
      ...(this.#counts
        ? [
            drawCell(
              count > 0 ? toColored(palette.taken, `${count}×`) : toColored(palette.missed, 'never'),
              fill,
            ),
          ]
        : []),
    ]
    return `<tr>${addPorts(cells, index).join('')}</tr>`
  }

  #drawTarget(id: string, from: ChartState, main: boolean): string {
    const tone = this.#look.tones[id]
    const name = escapeXml(`→ ${toRelativeName(id, from)}`)
    const color = tone ? toneColors[tone].line : main ? palette.main : palette.text
    return toColored(color, main ? toBold(name + gap) : name)
  }
}

export function rowPort(index: number, side: 'left' | 'right' = 'right'): string {
  return `${side}${index}`
}

function addPorts(cells: readonly string[], row: number): string[] {
  return cells.map((each, column) => {
    const side = column === 0 ? 'left' : column === cells.length - 1 ? 'right' : undefined
    return side === undefined ? each : each.replace('<td ', `<td port="${rowPort(row, side)}" `)
  })
}

function hasEvents({ transitions }: ChartState): boolean {
  return transitions.some(({ on }) => on !== '')
}

export function drawHead(
  { key, type, description, invokes }: ChartState,
  { width, size = 17, colspan = 1 }: { width: number; size?: number; colspan?: number },
): string {
  const lines = [
    `<font point-size="${size}">${toBold(escapeXml(key) + gap)}</font>`,
    ...(type === 'parallel' ? [toColored(palette.quiet, 'in all of these at once')] : []),
    ...wrapWords(description, width).map((line) => toColored(palette.quiet, escapeXml(line))),
    ...invokes.map(({ src }) => `${toColored(palette.quiet, 'invoke')} ${toBold(escapeXml(src))}`),
  ]
  return lines.map((line) => `<tr>${drawCell(line, { colspan })}</tr>`).join('')
}

/** Siblings are shown by key, other states by full path. */
function toRelativeName(id: string, { id: from }: ChartState): string {
  const parent = from.slice(0, from.lastIndexOf('.') + 1)
  return parent !== '' && id.startsWith(parent) ? id.slice(parent.length) : id
}

function drawPill(content: string, color: string): string {
  return drawTable(
    { border: 1, style: 'rounded,dashed', color },
    `<tr>${drawCell(toColored(color, content))}</tr>`,
  )
}

/** Extra space, because some fonts are wider than the one Graphviz measures. */
const gap = '&#160;&#160;'

type Attributes = Readonly<Record<string, string | number>>

export function drawTable(attributes: Attributes, content: string): string {
  return `<table cellborder="0" cellspacing="0" cellpadding="3" ${formatAttributes(attributes)}>${content}</table>`
}

export function drawCell(content: string, attributes: Attributes = {}): string {
  return `<td align="left" ${formatAttributes(attributes)}>${content}</td>`
}

function formatAttributes(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${name}="${value}"`)
    .join(' ')
}

function toColored(color: string, content: string): string {
  if (content === '') return ''
  return `<font color="${color}">${content}</font>`
}

/** Uses a bold font name because Graphviz shifts the baseline of `<b>`. */
function toBold(content: string): string {
  return content === '' ? '' : `<font face="Helvetica-Bold">${content}</font>`
}

function wrapWords(words: string, width: number): string[] {
  const lines: string[] = []
  for (const word of words.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
