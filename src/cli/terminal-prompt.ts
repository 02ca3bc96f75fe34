import { createInterface } from 'node:readline'
import type { CliIO } from './command.js'
import type { CommonOptions } from './commands/common-options.js'

/** Asks the user; null when there is no answer (end of input, Ctrl-C, or `until` settled first). */
export type Ask = (question: string, until?: Promise<unknown>) => Promise<string | null>

/** Whether a user at the terminal can answer questions. */
export function canAsk({ output }: Pick<CommonOptions, 'output'>, { stdin, stdout }: CliIO): boolean {
  return output === 'human' && stdin.isTTY === true && stdout.isTTY === true
}

/** Asks on stdout and reads answers from stdin, line by line. `close` releases stdin. */
export function openTerminalPrompt({ stdin, stdout, signal }: CliIO): { ask: Ask; close: () => void } {
  // The terminal keeps its own line editing, and Ctrl-C stays a signal.
  const lines = createInterface({ input: stdin, terminal: false })
  const iterator = lines[Symbol.asyncIterator]()
  const close = () => {
    lines.close()
  }
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  // When a question is abandoned, the next question gets the pending line.
  let pendingLine: Promise<IteratorResult<string>> | undefined
  return {
    ask: async (question, until) => {
      if (signal.aborted) return null
      stdout.write(question)
      pendingLine ??= iterator.next()
      const line = await (until ? Promise.race([pendingLine, until.then(() => null)]) : pendingLine)
      if (line === null) return null
      pendingLine = undefined
      if (line.done === true) stdout.write('\n')
      return line.done === true ? null : line.value.trim()
    },
    close: () => {
      signal.removeEventListener('abort', close)
      close()
    },
  }
}
