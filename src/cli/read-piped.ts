import type { CliIO } from './command.js'
import { badUsage } from './cli-error.js'

const maxBytes = 10 * 1024 * 1024

/** Everything that is piped in, until its end. Stops when the person interrupts. */
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
      if (size > maxBytes) throw badUsage('The prompt on stdin is longer than 10 MiB.', 'PROMPT')
      chunks.push(bytes)
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return Buffer.concat(chunks).toString('utf8').trim()
}
