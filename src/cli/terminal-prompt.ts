import { createInterface } from 'node:readline'
import type { CliIO } from './command.js'
import type { CommonOptions } from './commands/common-options.js'

/** Puts a question to the person; null when there will be no answer (end of input, Ctrl-C, or `until` was there first). */
export type Ask = (question: string, until?: Promise<unknown>) => Promise<string | null>

/** Whether there is a person at the terminal who can answer what a run asks. */
export function canAsk({ output }: Pick<CommonOptions, 'output'>, { stdin, stdout }: CliIO): boolean {
  return output === 'human' && stdin.isTTY === true && stdout.isTTY === true
}

/** Questions on stdout, answers from stdin, line by line. `close` gives stdin back. */
export function openTerminalPrompt({ stdin, stdout, signal }: CliIO): { ask: Ask; close: () => void } {
  // The terminal keeps its own line editing, and Ctrl-C stays a signal.
  const lines = createInterface({ input: stdin, terminal: false })
  const iterator = lines[Symbol.asyncIterator]()
  const close = () => {
    lines.close()
  }
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  // A question that is given up leaves its line to the next one.
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
