import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { CliIO } from '../../src/cli/command.js'
import { runCli } from '../../src/cli/cli.js'
import { SigtermHandler } from '../../src/cli/command.js'

export interface CliCall {
  /** Lines that come in on stdin; without `tty` they are a pipe that ends. */
  input?: string
  /** A person at a terminal, on both ends. */
  tty?: boolean
  env?: Record<string, string>
  cwd?: string
  /** Where this user's data goes; default: a folder of the call's own. Null: the user has no home. */
  dataFolder?: string | null
  signal?: AbortSignal
  /** What SIGTERM begins. */
  sigterm?: SigtermHandler
  /** What stdout fails with: 'ENOSPC', 'EPIPE' … Default: it takes everything. */
  stdoutFails?: string
  /** Sees every piece of stderr as it comes. */
  onError?: (text: string) => void
  /** Sees every piece of stdout as it comes, and may write to stdin or destroy stdout. */
  onOutput?: (text: string, io: CliIO & { stdin: PassThrough; stdout: PassThrough }) => void
}

export interface CliOutcome {
  code: number
  out: string
  err: string
}

/** The command line with a world of its own: no network but loopback, no environment, no terminal. */
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
  // What was written last is still on its way through the streams.
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

/** A folder of its own with these files, removed after the test. */
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
