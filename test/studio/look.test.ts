import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { longTest } from '../support/extent.js'

/** The next line that contains these words. The end of the program is an error. */
async function hear(lines: AsyncIterator<string>, words: string): Promise<void> {
  for (let output = ''; !output.includes(words); ) {
    const { value, done } = await lines.next()
    if (done) throw new Error(`It ended before it said '${words}': ${output}`)
    output += value
  }
}

longTest(
  'npm run studio starts another run each time Enter is pressed, and continues',
  async () => {
    const script = fileURLToPath(new URL('../../scripts/studio.mjs', import.meta.url))
    const studio = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = once(studio, 'exit')
    try {
      const lines = studio.stdout.setEncoding('utf8')[Symbol.asyncIterator]() as AsyncIterator<string>
      await hear(lines, 'Enter begins another run')
      for (const session of ['live-1', 'live-2']) {
        studio.stdin.write('\n')
        await hear(lines, `Session ${session} has begun.`)
      }
      expect(studio.exitCode).toBeNull()
    } finally {
      studio.kill('SIGINT')
      await ended
    }
  },
  60_000,
)
