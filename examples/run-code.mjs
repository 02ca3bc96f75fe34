/**
 * A tool that runs JavaScript in a separate process. The process is killed when it exceeds its time, memory or output limit. It
 * cannot read or write files or start processes, and it gets no environment variables.
 *
 * These limits protect against mistakes. They are not a sandbox, because the process can use the network, and buffers are outside
 * the limited heap. Run untrusted code in a container or a virtual machine, started from here.
 */
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { defineTool, ToolError } from 'statewright'
import { z } from 'zod'

const execute = promisify(execFile)

/** A program cannot catch this signal. */
const killSignal = 'SIGKILL'

/** Node 20 supports only the older name of this option. */
const permission = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission'

/** `timeoutMs` limits the process, `memoryMb` its heap, and `maxBytes` its stdout and its stderr. */
export function runCode({ timeoutMs = 10_000, memoryMb = 64, maxBytes = 16_000 } = {}) {
  return defineTool({
    name: 'run_code',
    description: 'Runs a JavaScript module in Node and returns what it prints.',
    // The code becomes a process argument, and systems limit the length of arguments.
    input: z.object({ code: z.string().min(1).max(30_000) }),
    execute: async ({ code }, { signal }) => {
      signal.throwIfAborted()
      const flags = [permission, '--no-warnings', `--max-old-space-size=${memoryMb}`]
      const running = execute(process.execPath, [...flags, '--input-type=module', `--eval=${code}`], {
        timeout: timeoutMs,
        maxBuffer: maxBytes,
        killSignal,
        env: {},
        cwd: tmpdir(),
      })
      running.child.stdin.end()
      // Cancelling the run kills the process. The `signal` option would only send SIGTERM.
      signal.addEventListener('abort', () => running.child.kill(killSignal), { once: true })
      try {
        const { stdout, stderr } = await running
        return stdout + stderr || 'It printed nothing.'
      } catch (error) {
        signal.throwIfAborted()
        throw asToolError(error, { timeoutMs, memoryMb, maxBytes })
      }
    },
  })
}

function asToolError(error, { timeoutMs, memoryMb, maxBytes }) {
  const { code, signal, killed, stdout, stderr } = error
  const failed = (why, output) => new ToolError('failed', `${why}\n${output}`.trimEnd())
  // The last output of a killed V8 does not describe the program.
  if (/heap out of memory/.test(stderr))
    return failed(`It needed more than ${memoryMb} MB, and died.`, stdout)
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
    return failed(
      `It printed more than ${maxBytes} bytes and was killed. Its output begins:`,
      stdout + stderr,
    )
  }
  if (killed) return failed(`It took longer than ${timeoutMs} ms and was killed.`, stdout + stderr)
  if (signal) return failed(`It died of ${signal}.`, stdout)
  if (typeof code === 'number') return failed(`It failed with exit code ${code}.`, stdout + stderr)
  return error
}
