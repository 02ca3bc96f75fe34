import { readProperty } from '../../core/base/json.js'
import type { McpCommand } from './mcp-options.js'
import { loadStdioSdk, type ServerWire, type WireEvents } from './server-wire.js'
import { watchAnswers } from './task-wire.js'

/** Characters of the child's stderr that are kept. */
const maxStderrChars = 4096

/** Milliseconds after which a server that says nothing to the newer greeting is given the older one. */
const maxProbeMs = 10_000

/** A server as a child process. Its stderr is kept, not printed. */
export async function createStdioWire(
  {
    command,
    args = [],
    env,
    cwd,
    maxMessageBytes,
    startTimeoutMs,
  }: McpCommand & { maxMessageBytes: number; startTimeoutMs: number },
  { onLost, onComplaint }: WireEvents,
): Promise<ServerWire> {
  const { StdioClientTransport } = await loadStdioSdk()
  // For its very own class the SDK starts every server twice, to ask the first one only which protocol it speaks.
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
  const tail = new TextTail(maxStderrChars)
  transport.stderr?.on('data', (chunk: Uint8Array) => {
    tail.add(chunk)
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has these only
  transport.onerror = (error) => {
    // The one error after which the SDK gives the child up; it waits for seconds until that is done.
    if (!error.message.startsWith('ReadBuffer exceeded')) return onComplaint(error)
    onLost({
      reason: `sent a message of more than ${maxMessageBytes} bytes and was stopped`,
      transient: false,
    })
  }
  // oxlint-disable-next-line unicorn/prefer-add-event-listener
  transport.onclose = () => {
    onLost({ reason: 'has ended', transient: true })
  }
  return {
    transport,
    place: command,
    hasHeaders: false,
    probeTimeoutMs: Math.min(maxProbeMs, startTimeoutMs / 2),
    getLastOutput: () => {
      const words = tail.text.trim()
      return words === '' ? '' : `It last wrote to stderr: ${words}`
    },
    explain: (error) => explainStartError(error, command, cwd),
    // Closing its stdin, which the transport does first, is how a child is asked to leave.
    shutDown: () => Promise.resolve(),
    kill: () => {
      const { pid } = transport
      if (pid === null) return
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It is gone already.
      }
    },
  }
}

function explainStartError(error: unknown, command: string, cwd: string | undefined): string | undefined {
  switch (readProperty(error, 'code')) {
    case 'ENOENT':
      return cwd !== undefined && !isFolder(cwd)
        ? `The folder '${cwd}' (cwd) does not exist.`
        : `The command '${command}' was not found. Install it, or give its full path.`
    case 'EACCES':
      return `The command '${command}' may not be executed.`
    case 'ENOTDIR':
      return `'${cwd}' (cwd) is not a folder.`
    default:
      return undefined
  }
}

function isFolder(path: string): boolean {
  // Asked for when it is needed: the rest of this entry also runs, and bundles, where there is no Node.
  const { statSync } = process.getBuiltinModule('node:fs')
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** The end of a stream of UTF-8 text. */
export class TextTail {
  readonly #limit: number
  readonly #decoder = new TextDecoder()
  #text = ''

  /** `limit` in characters. */
  constructor(limit: number) {
    this.#limit = limit
  }

  add(chunk: Uint8Array): void {
    this.#text = (this.#text + this.#decoder.decode(chunk, { stream: true })).slice(-this.#limit)
  }

  get text(): string {
    return this.#text
  }
}
