import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type CliIO, SigtermHandler } from '../../src/cli/command.js'
import { runCli } from '../../src/cli/cli.js'

export interface CliCall {
  /** Lines on stdin. Without `tty`, stdin is a pipe that ends. */
  input?: string
  /** A terminal on stdin and stdout. */
  tty?: boolean
  env?: Record<string, string>
  cwd?: string
  /** The user's data folder. By default each call gets a new folder. Null when the user has no home. */
  dataFolder?: string | null
  signal?: AbortSignal
  /** The handler of SIGTERM. */
  sigterm?: SigtermHandler
  /** The error code of stdout, such as 'ENOSPC' or 'EPIPE'. Default: writes succeed. */
  stdoutFails?: string
  /** Called with each chunk of stderr. */
  onError?: (text: string) => void
  /** Called with each chunk of stdout. May write to stdin or destroy stdout. */
  onOutput?: (text: string, io: CliIO & { stdin: PassThrough; stdout: PassThrough }) => void
}

export interface CliOutcome {
  code: number
  out: string
  err: string
}

/** The command line in an isolated environment: only loopback network, no variables, no terminal. */
export async function cli(args: readonly string[], call: CliCall = {}): Promise<CliOutcome> {
  const { input = '', tty = false, env = {}, cwd = process.cwd(), onOutput } = call
  const { dataFolder = await folder({}) } = call
  const io = {
    stdin: Object.assign(new PassThrough(), { isTTY: tty }),
    stdout: Object.assign(new PassThrough(), { isTTY: tty, columns: 100 }),
    stderr: Object.assign(new PassThrough(), { isTTY: tty, columns: 100 }),
    env,
    cwd,
    dataFolder: () => Promise.resolve(dataFolder),
    signal: call.signal ?? new AbortController().signal,
    sigterm: call.sigterm ?? new SigtermHandler(),
  }
  const outcome = { out: '', err: '' }
  io.stdout.on('data', (chunk: Buffer) => {
    outcome.out += chunk.toString()
    onOutput?.(chunk.toString(), io)
  })
  io.stderr.on('data', (chunk: Buffer) => {
    outcome.err += chunk.toString()
    call.onError?.(chunk.toString())
  })
  if (input !== '') io.stdin.write(input)
  if (!tty) io.stdin.end()
  if (call.stdoutFails !== undefined) failWrites(io.stdout, call.stdoutFails)
  const code = await runCli(args, io)
  // The last output is still in the streams.
  await new Promise((resolve) => setImmediate(resolve))
  return { code, ...outcome }
}

function failWrites(stream: PassThrough, code: string): void {
  Object.assign(stream, {
    _transform: (_chunk: unknown, _encoding: unknown, done: (error: Error) => void) => {
      done(Object.assign(new Error(`${code}: it was refused, write`), { code }))
    },
  })
}

/** A temporary folder with the given files, removed after the test. */
export async function folder(files: Record<string, unknown>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'statewright-cli-'))
  folders.push(path)
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(path, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return path
}

const folders: string[] = []

export async function removeFolders(): Promise<void> {
  await Promise.all(folders.splice(0).map((path) => rm(path, { recursive: true, force: true })))
}
