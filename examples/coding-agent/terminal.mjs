/** What the user sees and answers: the events of a run as lines, changes as small diffs, questions. */
import { createInterface } from 'node:readline'
import { stripVTControlCharacters, styleText } from 'node:util'
import { createEventFormatter } from 'statewright'

const maxDiffLines = 30

export function openTerminal({ stdin, stdout }) {
  const isColored = stdout.isTTY === true && !process.env.NO_COLOR
  const width = Math.min(stdout.columns ?? 100, 110)
  const paint = (style, text) => (isColored ? styleText(style, text) : text)
  const format = createEventFormatter({ width, color: isColored, timings: false })
  const print = (text) => stdout.write(`${text}\n`)
  const cut = (text) => (text.length > width ? `${text.slice(0, width - 1)}…` : text)

  let isPlanShown = false

  /** The whole plan once, and then what is done and what is next. */
  function showPlan({ done, next }) {
    if (isPlanShown) {
      const count = `${done.length}/${done.length + next.length}`
      print(
        cut(
          `  ${paint('green', '✓')} ${count} ${clean(done.at(-1) ?? '')}${next[0] ? ` → ${clean(next[0])}` : ''}`,
        ),
      )
    } else {
      for (const step of done) print(cut(`  ✓ ${clean(step)}`))
      for (const step of next) print(cut(`  ○ ${clean(step)}`))
    }
    isPlanShown = true
  }

  /** Prints what a call would do: a change of a file as a diff. What a person approves is never cut at the right. */
  function showCall({ name, arguments: json, path = [] }, isWhole = false) {
    const { file, old, new: text, ...other } = JSON.parse(json)
    print(paint('bold', `\n  ${[...path, name].join(' › ')} ${clean(file ?? '')}`.trimEnd()))
    const mark = (value, sign, style) =>
      value === undefined ? [] : value.split('\n').map((line) => paint(style, `  ${sign} ${clean(line)}`))
    const diff = [...mark(old, '-', 'red'), ...mark(text, '+', 'green')]
    const shown = isWhole ? diff : diff.slice(0, maxDiffLines)
    for (const line of shown) print(line)
    if (diff.length > shown.length) print(`    … ${diff.length - shown.length} more lines: 'all' shows them`)
    for (const [key, value] of Object.entries(other))
      print(`    ${clean(key)}: ${clean(JSON.stringify(value))}`)
  }

  return {
    print,
    showCall,
    dim: (text) => print(paint('dim', text)),
    showEvent(event) {
      if (event.type === 'tool_progress' && event.name === 'plan') showPlan(event.progress)
      else if (!isQuiet(event)) stdout.write(format(event))
    },
    showUsage: (usage) => print(paint('dim', `  ${formatUsage(usage)}`)),
    /** What the user types; null at the end of the input, or when `signal` aborts. */
    ask: (question, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve(null)
        // The terminal keeps its own line editing, so that Ctrl-C stays a signal.
        const lines = createInterface({ input: stdin, terminal: false })
        const answer = (value) => {
          resolve(value)
          lines.close()
        }
        signal.addEventListener('abort', () => answer(null), { once: true })
        lines.once('line', (line) => answer(line.trim())).once('close', () => resolve(null))
        stdout.write(question)
      }),
  }
}

/** Text of a model, without what could move the cursor or hide a part of a change. */
function clean(text) {
  return stripVTControlCharacters(text).replaceAll(/[^\P{C}\t]/gu, '·')
}

const shownElsewhere = new Set(['plan', 'edit_file'])

/** States say little here. A plan and a call that waits are shown by functions of their own. */
function isQuiet({ type, call, name, seq }) {
  // A run that is refused: its error is printed.
  if (type === 'warning' && seq === 1) return true
  if (type === 'tool_call') return shownElsewhere.has(call.function.name)
  return (
    type === 'state_changed' || type === 'approval_requested' || (type === 'tool_result' && name === 'plan')
  )
}

function formatUsage({ totalTokens, cost }) {
  return `${totalTokens.toLocaleString('en-US')} tokens, ${cost === null ? 'cost unknown' : `$${cost.toFixed(4)}`}`
}
