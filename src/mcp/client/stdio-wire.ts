import { readProperty } from '../../core/base/json.js'
import type { McpCommand } from './mcp-options.js'
import { loadStdioSdk, type ServerWire, type WireEvents } from './server-wire.js'
import { watchAnswers } from './task-wire.js'

const maxStderrChars = 4096

/** If the server is silent for this long, the older initialization is tried. */
const maxProbeMs = 10_000

/** Starts a server as a child process. Its stderr is buffered instead of printed. */
export async function createStdioWire(
  options: McpCommand & { maxMessageBytes: number; startTimeoutMs: number },
  { onLost, onComplaint }: WireEvents,
): Promise<ServerWire> {
  const { command, args = [], env, cwd, maxMessageBytes, startTimeoutMs } = options
  const { StdioClientTransport } = await loadStdioSdk()
  // With the SDK's own class, every server would be started twice to negotiate the protocol.
  class ChildTransport extends StdioClientTransport {}
  const transport = new ChildTransport({
    command,
    args: [...args],
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
    stderr: 'pipe',
    maxBufferSize: maxMessageBytes,
  })
  watchAnswers(transport)
  const tail = createTextTail(maxStderrChars)
  transport.stderr?.on('data', tail.add)
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has these only
  transport.onerror = (error) => {
    // After this error, the SDK takes seconds to abandon the child.
    if (!error.message.startsWith('ReadBuffer exceeded')) return onComplaint(error)
    const reason = `sent a message larger than ${maxMessageBytes} bytes and was stopped`
    onLost({ reason, transient: false })
  }
  // oxlint-disable-next-line unicorn/prefer-add-event-listener
  transport.onclose = () => onLost({ reason: 'has ended', transient: true })
  return {
    transport,
    place: command,
    hasHeaders: false,
    probeTimeoutMs: Math.min(maxProbeMs, startTimeoutMs / 2),
    getLastOutput: () => {
      const words = tail.read().trim()
      return words === '' ? '' : `It last wrote to stderr: ${words}`
    },
    explain: (error) => explainStartError(error, command, cwd),
    // The transport closes stdin first, which asks the child to exit.
    shutDown: () => Promise.resolve(),
    kill: () => {
      const { pid } = transport
      if (pid === null) return
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // The child has already exited.
      }
    },
  }
}

function explainStartError(error: unknown, command: string, cwd: string | undefined): string | undefined {
  const code = readProperty(error, 'code')
  if (code === 'EACCES') return `This process is not allowed to execute the command '${command}'.`
  if (code === 'ENOTDIR') return `'${cwd}' (cwd) is not a folder.`
  if (code !== 'ENOENT') return undefined
  return cwd !== undefined && !isFolder(cwd)
    ? `The folder '${cwd}' (cwd) does not exist.`
    : `The command '${command}' was not found. Install it, or give its full path.`
}

function isFolder(path: string): boolean {
  // Loaded on demand, because the rest of this entry point also runs without Node.
  const { statSync } = process.getBuiltinModule('node:fs')
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

export function createTextTail(limit: number) {
  const decoder = new TextDecoder()
  let text = ''
  return {
    add: (chunk: Uint8Array): void => {
      text = (text + decoder.decode(chunk, { stream: true })).slice(-limit)
    },
    read: () => text,
  }
}
