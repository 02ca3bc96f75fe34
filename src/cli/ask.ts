import { createInterface } from 'node:readline'
import type { CliIO } from './command.js'

/** Puts a question to the person; null when there will be no answer (end of input, or Ctrl-C). */
export type Ask = (question: string) => Promise<string | null>

/** Questions on stdout, answers from stdin, line by line. `close` gives stdin back. */
export function asker({ stdin, stdout, signal }: CliIO): { ask: Ask; close: () => void } {
  // The terminal keeps its own line editing, and Ctrl-C stays a signal.
  const lines = createInterface({ input: stdin, terminal: false })
  const iterator = lines[Symbol.asyncIterator]()
  const close = () => {
    lines.close()
  }
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  return {
    ask: async (question) => {
      if (signal.aborted) return null
      stdout.write(question)
      const { done, value } = await iterator.next()
      if (done) stdout.write('\n')
      return done ? null : value.trim()
    },
    close: () => {
      signal.removeEventListener('abort', close)
      close()
    },
  }
}
