import type { ChartState, ChartTransition } from './chart.js'
import type { TransitionCounts } from './coverage.js'
import { isMain, type Look } from './look.js'
import { palette, toneColors } from './theme.js'

/**
 * A state as a table for Graphviz: what it is and what it invokes, then a row for each transition. An edge starts at
 * the row that it stands for, so no label ever lies on a line.
 */
export class Cards {
  readonly #look: Look
  readonly #counts: TransitionCounts | undefined
  readonly #order: ReadonlyMap<string, number> | undefined

  /** With the places of transitions, the cells of a row are named by its own: `#t3`. */
  constructor(look: Look, counts?: TransitionCounts, order?: ReadonlyMap<string, number>) {
    this.#look = look
    this.#counts = counts
    this.#order = order
  }

  #columns(state: ChartState): number {
    return 2 + (hasEvents(state) ? 1 : 0) + (this.#counts ? 1 : 0)
  }

  /** A state without nested ones; `isRegion`: one of those in which a parallel state is at once. */
  atomic(state: ChartState, isRegion = false): string {
    if (state.type === 'history')
      return pill(`${bold(state.history === 'deep' ? 'H*' : 'H')} ${text(state.key)}`, palette.quiet)
    const tone = state.type === 'final' ? toneColors[this.#look.tones[state.id] ?? 'neutral'] : undefined
    const rows = this.#rows(state)
    return table(
      {
        border: tone ? 2 : 1,
        style: isRegion ? 'rounded,dashed' : 'rounded',
        color: tone?.line ?? palette.line,
        bgcolor: tone?.fill ?? palette.card,
      },
      `${head(state, { width: 46, colspan: this.#columns(state) })}${rows === '' ? '' : `<hr/>${rows}`}`,
    )
  }

  /** The heading of a compound state, at the top of the area that holds its nested states. */
  compound(state: ChartState, size: number): string {
    const space = '<tr><td height="8"></td></tr>'
    return table(
      { border: 0 },
      `${head(state, { width: 72, size, colspan: this.#columns(state) })}${this.#rows(state)}${space}`,
    )
  }

  #rows(state: ChartState): string {
    return state.transitions.map((transition, index) => this.#row(state, transition, index)).join('')
  }

  #row(state: ChartState, transition: ChartTransition, index: number): string {
    const { on, when, targets } = transition
    const main = !this.#counts && isMain(this.#look, transition)
    const count = this.#counts?.get(transition.id) ?? 0
    const place = this.#order?.get(transition.id)
    const fill = {
      ...(this.#counts && count === 0 && { bgcolor: palette.missedFill }),
      ...(place !== undefined && { href: `#t${place}` }),
    }
    const guard = colored(main ? palette.main : palette.text, text(`[${when}]`) + gap)
    const condition = when === null ? (on === '' ? 'always' : '') : when === 'else' ? 'else' : null
    const to = targets.map((id) => this.#target(id, state, main)).join(' ')
    const cells = [
      // Text of one kind a cell: only then do all cells of a row share a baseline.
      ...(hasEvents(state) ? [cell(bold(text(on) + gap), fill)] : []),
      cell(condition === null ? guard : colored(palette.quiet, condition + gap), fill),
      cell(to === '' ? colored(palette.quiet, 'stays') : to, fill),
      ...(this.#counts
        ? [cell(count > 0 ? colored(palette.taken, `${count}×`) : colored(palette.missed, 'never'), fill)]
        : []),
    ]
    return `<tr>${withPorts(cells, index).join('')}</tr>`
  }

  #target(id: string, from: ChartState, main: boolean): string {
    const tone = this.#look.tones[id]
    const name = text(`→ ${relative(id, from)}`)
    const color = tone ? toneColors[tone].line : main ? palette.main : palette.text
    return colored(color, main ? bold(name + gap) : name)
  }
}

/** Where the line of a state's transition starts. */
export function rowPort(index: number, side: 'left' | 'right' = 'right'): string {
  return `${side}${index}`
}

function withPorts(cells: readonly string[], row: number): string[] {
  return cells.map((each, column) => {
    const side = column === 0 ? 'left' : column === cells.length - 1 ? 'right' : undefined
    return side === undefined ? each : each.replace('<td ', `<td port="${rowPort(row, side)}" `)
  })
}

function hasEvents({ transitions }: ChartState): boolean {
  return transitions.some(({ on }) => on !== '')
}

/** What a card begins with: name, description, actors. */
export function head(
  { key, type, description, invokes }: ChartState,
  { width, size = 17, colspan = 1 }: { width: number; size?: number; colspan?: number },
): string {
  const lines = [
    `<font point-size="${size}">${bold(text(key) + gap)}</font>`,
    ...(type === 'parallel' ? [colored(palette.quiet, 'in all of these at once')] : []),
    ...wrap(description, width).map((line) => colored(palette.quiet, text(line))),
    ...invokes.map(({ src }) => `${colored(palette.quiet, 'invoke')} ${bold(text(src))}`),
  ]
  return lines.map((line) => `<tr>${cell(line, { colspan })}</tr>`).join('')
}

/** Siblings go by their own name, everything else by its whole path. */
function relative(id: string, { id: from }: ChartState): string {
  const parent = from.slice(0, from.lastIndexOf('.') + 1)
  return parent !== '' && id.startsWith(parent) ? id.slice(parent.length) : id
}

/** A small label of its own, with a dashed border. */
export function pill(content: string, color: string): string {
  return table({ border: 1, style: 'rounded,dashed', color }, `<tr>${cell(colored(color, content))}</tr>`)
}

/** Between the columns; some fonts are wider than the one that Graphviz measures. */
export const gap = '&#160;&#160;'

type Attributes = Readonly<Record<string, string | number>>

export function table(attributes: Attributes, content: string): string {
  return `<table cellborder="0" cellspacing="0" cellpadding="3" ${written(attributes)}>${content}</table>`
}

export function cell(content: string, attributes: Attributes = {}): string {
  return `<td align="left" ${written(attributes)}>${content}</td>`
}

function written(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${name}="${value}"`)
    .join(' ')
}

function colored(color: string, content: string): string {
  if (content === '') return ''
  return `<font color="${color}">${content}</font>`
}

/** By the font's name: Graphviz sets `<b>` on another baseline. */
export function bold(content: string): string {
  return content === '' ? '' : `<font face="Helvetica-Bold">${content}</font>`
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escaped for HTML-like labels and XML; what no XML document may hold is left out. */
export function text(plain: string): string {
  return plain
    .replaceAll(/[^\P{Cc}\t\n\r]|\p{Cs}|[\ufffe\uffff]/gu, '')
    .replaceAll(/[&<>"]/g, (character) => escapes[character] ?? '')
}

function wrap(words: string, width: number): string[] {
  const lines: string[] = []
  for (const word of words.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
