/** The terminal interface: run events as lines, changes as small diffs, and questions. */
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

  /** The full plan once, then the completed and the next step. */
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

  /** Prints the effect of a call. A file change appears as a diff. Approval texts are never truncated. */
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
    /** The user's input. Null at the end of the input, or when `signal` aborts. */
    ask: (question, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve(null)
        // The terminal keeps its line editing, so that Ctrl-C stays a signal.
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

/** Removes characters from the model's text that could move the cursor or hide part of a change. */
function clean(text) {
  return stripVTControlCharacters(text).replaceAll(/[^\P{C}\t]/gu, '·')
}

const shownElsewhere = new Set(['plan', 'edit_file'])

/** State changes add little here. Separate functions show plans and waiting calls. */
function isQuiet({ type, call, name, seq }) {
  // A rejected run. Its error is printed.
  if (type === 'warning' && seq === 1) return true
  if (type === 'tool_call') return shownElsewhere.has(call.function.name)
  return (
    type === 'state_changed' || type === 'approval_requested' || (type === 'tool_result' && name === 'plan')
  )
}

function formatUsage({ totalTokens, cost }) {
  return `${totalTokens.toLocaleString('en-US')} tokens, ${cost === null ? 'cost unknown' : `$${cost.toFixed(4)}`}`
}
