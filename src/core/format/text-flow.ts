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
export function createTextFlow({ width, paint, style }: TextFlowOptions) {
  let pending = ''
  let isCode = false
  let rows: string[] = []
  /** The prefix of wrapped lines. Null at the start of a line. */
  let indent: string | null = null
  let column = 0
  let isHeading = false
  let mark: '**' | '`' | null = null

  function write(text: string): string {
    pending += text
    let out = ''
    for (;;) {
      const part = indent === null ? takeLine() : takeWord()
      if (part === null) return out
      out += part
    }
  }

  function end(): string {
    if (pending === '' && indent === null) return flushTable()
    return write('\n') + flushTable()
  }

  /** Takes a line that is shown as a whole, or the start of one. Returns null if more text is needed to decide. */
  function takeLine(): string | null {
    const stop = pending.indexOf('\n')
    const line = stop < 0 ? pending : pending.slice(0, stop)
    const isWhole = /^ *(```|\|)/.test(line) || isCode || rule.test(line)
    if (stop < 0 && (isWhole || undecided.test(line))) return null
    if (isWhole) {
      pending = pending.slice(stop + 1)
      return showLine(line)
    }
    const table = flushTable()
    const [all, before = '', kind = ''] = lineStart.exec(line) ?? ['']
    pending = pending.slice(all.length)
    isHeading = kind.startsWith('#')
    const head = all === '' || isHeading ? '' : `${before}${formatLineStart(kind)} `
    indent = ' '.repeat(head.length)
    column = head.length
    return table + head
  }

  function showLine(line: string): string {
    if (/^ *\|/.test(line) && !isCode) {
      rows.push(line)
      return ''
    }
    const table = flushTable()
    if (/^ *```/.test(line)) isCode = !isCode
    else if (isCode) return `${table}  ${line}\n`
    else return `${table}${paint('dim', '─'.repeat(Math.min(width, 40)))}\n`
    return table
  }

  function takeWord(): string | null {
    const [all, word = '', gap] = /^[ \t]*([^\s]*)(\s)/.exec(pending) ?? []
    if (all === undefined) return null
    pending = pending.slice(all.length)
    const out = word === '' ? '' : showWord(word)
    if (gap !== '\n') return out
    indent = null
    column = 0
    mark = null
    return `${out}\n`
  }

  function showWord(word: string): string {
    const text = styleWord(word)
    const columns = getColumns(text)
    const start = indent ?? ''
    const isFirst = column <= start.length
    const breaks = !isFirst && column + 1 + columns > width
    column = (breaks ? start.length : column + (isFirst ? 0 : 1)) + columns
    return (breaks ? `\n${start}` : isFirst ? '' : ' ') + text
  }

  /** Applies and removes bold and code markers, which can span several words. */
  function styleWord(word: string): string {
    let out = ''
    let before = ''
    const parts = word.split(/(\*\*|`)/)
    for (const [at, part] of parts.entries()) {
      const isMark = at % 2 === 1 && (mark === null || mark === part)
      const opens = mark === null && parts[at + 1] !== '' && !/[\p{L}\p{N}]$/u.test(before)
      if (isMark && (opens || mark !== null)) mark = opens ? (part as '**' | '`') : null
      else out += paintText(part)
      before = part
    }
    return out
  }

  function paintText(text: string): string {
    const marked =
      mark === '`' ? paint('cyan', text) : mark === '**' || isHeading ? paint('bold', text) : text
    return style === undefined ? marked : paint(style, marked)
  }

  function flushTable(): string {
    if (rows.length === 0) return ''
    const lines = rows
    rows = []
    const table = lines.map((row) =>
      row
        .trim()
        .replaceAll(/^\||\|$/g, '')
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll(/\*\*|`|\\(?=\|)/g, '')),
    )
    const [heads = [], rules = [], ...cells] = table
    if (!rules.every((cell) => /^:?-+:?$/.test(cell))) return lines.map((line) => `${line}\n`).join('')
    const widths = heads.map((head, at) =>
      Math.max(getColumns(head), ...cells.map((row) => getColumns(row[at] ?? ''))),
    )
    const total = widths.reduce((sum, columns) => sum + columns + 2, 0)
    if (total > width) return listCells(heads, cells)
    const toLine = (row: readonly string[]): string =>
      widths
        .map((columns, at) => {
          const cell = row[at] ?? ''
          const gap = ' '.repeat(columns - getColumns(cell))
          return rules[at]?.endsWith(':') ? gap + cell : cell + gap
        })
        .join('  ')
        .trimEnd()
    return [
      paint('bold', toLine(heads)),
      paint('dim', widths.map((columns) => '─'.repeat(columns)).join('  ')),
      ...cells.map(toLine),
      '',
    ].join('\n')
  }

  function listCells(heads: readonly string[], cells: readonly (readonly string[])[]): string {
    return cells
      .map((row) =>
        heads.map((head, at) => `${wrapWords(`${head}: ${row[at] ?? ''}`, width, '  ')}\n`).join(''),
      )
      .join('\n')
  }

  return { write, end }
}

function formatLineStart(kind: string): string {
  if (kind === '>') return '│'
  return /^\d/.test(kind) ? kind : '•'
}
