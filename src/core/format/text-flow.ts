import { type Paint, type Style, getColumns, wrapWords } from './format-words.js'

interface TextFlowOptions {
  width: number
  paint: Paint
  style?: Style
}

/** The start of a line that may still become a heading, a list item, a quote, a rule or code. */
const undecided = /^ *(#{0,6}|[-*_]*|\+|\d{1,3}[.)]?|>|`{0,2})$/

/** A heading, a list item or a quote, with its indent. */
const lineStart = /^( *)(#{1,6}|[-*+]|\d{1,3}[.)]|>) +/

const rule = /^ *([-*_])( ?\1){2,} *$/

/** Renders streamed Markdown. Words appear when they are complete, tables with their last row. */
export class TextFlow {
  readonly #width: number
  readonly #paint: Paint
  readonly #style: Style | undefined
  #pending = ''
  #isCode = false
  #rows: string[] = []
  /** The prefix of wrapped lines. Null at the start of a line. */
  #indent: string | null = null
  #column = 0
  #isHeading = false
  #mark: '**' | '`' | null = null

  constructor({ width, paint, style }: TextFlowOptions) {
    this.#width = width
    this.#paint = paint
    this.#style = style
  }

  write(text: string): string {
    this.#pending += text
    let out = ''
    for (;;) {
      const part = this.#indent === null ? this.#takeLine() : this.#takeWord()
      if (part === null) return out
      out += part
    }
  }

  end(): string {
    if (this.#pending === '' && this.#indent === null) return this.#flushTable()
    return this.write('\n') + this.#flushTable()
  }

  /** Takes a line that is shown as a whole, or the start of one. Returns null if more text is needed to decide. */
  #takeLine(): string | null {
    const end = this.#pending.indexOf('\n')
    const line = end < 0 ? this.#pending : this.#pending.slice(0, end)
    const isWhole = /^ *(```|\|)/.test(line) || this.#isCode || rule.test(line)
    if (end < 0 && (isWhole || undecided.test(line))) return null
    if (isWhole) {
      this.#pending = this.#pending.slice(end + 1)
      return this.#showLine(line)
    }
    const table = this.#flushTable()
    const [all, indent = '', kind = ''] = lineStart.exec(line) ?? ['']
    this.#pending = this.#pending.slice(all.length)
    this.#isHeading = kind.startsWith('#')
    const head = all === '' || this.#isHeading ? '' : `${indent}${formatLineStart(kind)} `
    this.#indent = ' '.repeat(head.length)
    this.#column = head.length
    return table + head
  }

  #showLine(line: string): string {
    if (/^ *\|/.test(line) && !this.#isCode) {
      this.#rows.push(line)
      return ''
    }
    const table = this.#flushTable()
    if (/^ *```/.test(line)) this.#isCode = !this.#isCode
    else if (this.#isCode) return `${table}  ${line}\n`
    else return `${table}${this.#paint('dim', '─'.repeat(Math.min(this.#width, 40)))}\n`
    return table
  }

  #takeWord(): string | null {
    const [all, word = '', gap] = /^[ \t]*([^\s]*)(\s)/.exec(this.#pending) ?? []
    if (all === undefined) return null
    this.#pending = this.#pending.slice(all.length)
    const out = word === '' ? '' : this.#showWord(word)
    if (gap !== '\n') return out
    this.#indent = null
    this.#column = 0
    this.#mark = null
    return `${out}\n`
  }

  #showWord(word: string): string {
    const text = this.#styleWord(word)
    const columns = getColumns(text)
    const indent = this.#indent ?? ''
    const isFirst = this.#column <= indent.length
    const breaks = !isFirst && this.#column + 1 + columns > this.#width
    this.#column = (breaks ? indent.length : this.#column + (isFirst ? 0 : 1)) + columns
    return (breaks ? `\n${indent}` : isFirst ? '' : ' ') + text
  }

  /** Applies and removes bold and code markers, which can span several words. */
  #styleWord(word: string): string {
    let out = ''
    let before = ''
    const parts = word.split(/(\*\*|`)/)
    for (const [at, part] of parts.entries()) {
      const isMark = at % 2 === 1 && (this.#mark === null || this.#mark === part)
      const opens = this.#mark === null && parts[at + 1] !== '' && !/[\p{L}\p{N}]$/u.test(before)
      if (isMark && (opens || this.#mark !== null)) this.#mark = opens ? (part as '**' | '`') : null
      else out += this.#paintText(part)
      before = part
    }
    return out
  }

  #paintText(text: string): string {
    const marked =
      this.#mark === '`'
        ? this.#paint('cyan', text)
        : this.#mark === '**' || this.#isHeading
          ? this.#paint('bold', text)
          : text
    return this.#style === undefined ? marked : this.#paint(this.#style, marked)
  }

  #flushTable(): string {
    if (this.#rows.length === 0) return ''
    const rows = this.#rows.map((row) =>
      row
        .trim()
        .replaceAll(/^\||\|$/g, '')
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll(/\*\*|`|\\(?=\|)/g, '')),
    )
    const lines = this.#rows
    this.#rows = []
    const [heads = [], rules = [], ...cells] = rows
    if (!rules.every((cell) => /^:?-+:?$/.test(cell))) return lines.map((line) => `${line}\n`).join('')
    const widths = heads.map((head, at) =>
      Math.max(getColumns(head), ...cells.map((row) => getColumns(row[at] ?? ''))),
    )
    const total = widths.reduce((sum, width) => sum + width + 2, 0)
    if (total > this.#width) return this.#listCells(heads, cells)
    const toLine = (row: readonly string[]): string =>
      widths
        .map((width, at) => {
          const cell = row[at] ?? ''
          const gap = ' '.repeat(width - getColumns(cell))
          return rules[at]?.endsWith(':') ? gap + cell : cell + gap
        })
        .join('  ')
        .trimEnd()
    return [
      this.#paint('bold', toLine(heads)),
      this.#paint('dim', widths.map((width) => '─'.repeat(width)).join('  ')),
      ...cells.map(toLine),
      '',
    ].join('\n')
  }

  #listCells(heads: readonly string[], rows: readonly (readonly string[])[]): string {
    return rows
      .map((row) =>
        heads.map((head, at) => `${wrapWords(`${head}: ${row[at] ?? ''}`, this.#width, '  ')}\n`).join(''),
      )
      .join('\n')
  }
}

function formatLineStart(kind: string): string {
  if (kind === '>') return '│'
  return /^\d/.test(kind) ? kind : '•'
}
