import { badUsageError } from './cli-error.js'
import type { CliIO } from './command.js'

/** The prompt: the argument, stdin for `-`, else the fallback, else piped stdin. */
export async function choosePrompt(
  given: string | undefined,
  fallback: string | undefined,
  io: CliIO,
): Promise<string> {
  const takesPipe =
    given === '-' || (given === undefined && fallback === undefined && io.stdin.isTTY !== true)
  const prompt = takesPipe ? await readPiped(io) : (given ?? fallback ?? '')
  if (prompt.trim() !== '') return prompt
  throw badUsageError(
    takesPipe
      ? 'Nothing came in on stdin. Pipe a prompt in, or give it as an argument.'
      : 'There is no prompt. Give one, such as: statewright run "What changed last week?"',
    'PROMPT',
  )
}

const maxBytes = 10 * 1024 * 1024

/** Reads stdin to its end. Ctrl-C stops it. */
export async function readPiped({ stdin, signal }: Pick<CliIO, 'stdin' | 'signal'>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  const stop = () => stdin.destroy(new Error('Interrupted.'))
  signal.addEventListener('abort', stop)
  try {
    signal.throwIfAborted()
    for await (const chunk of stdin) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array)
      size += bytes.length
      if (size > maxBytes) throw badUsageError('The prompt on stdin is longer than 10 MiB.', 'PROMPT')
      chunks.push(bytes)
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return Buffer.concat(chunks).toString('utf8').trim()
}
