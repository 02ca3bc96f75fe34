import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Built {
  url: string
  /** Called when nothing needs it any longer. */
  remove: () => void
}

/** The file store as a module that another Node process can import. */
export const buildFileStore = (): Built => buildModule('file-store')

/** The same, with the agent modules. */
export const buildAgents = (): Built => buildModule('agents')

/** The same, with budgets. */
export const buildFleet = (): Built => buildModule('fleet')

/** The modules of a process that runs durable machines. */
export const buildDurable = (): Built => buildModule('durable')

/** The modules of a process that serves agents to MCP clients. */
export const buildServing = (): Built => buildModule('serving')

/** The modules of a process that runs agents with MCP tools, and a model that calls one. */
export const buildMcpAgents = (): Built => buildModule('mcp-agents')

/** `npm test` has built all of them in this folder. */
const ready = process.env['STATEWRIGHT_CHILDREN']

function buildModule(name: string): Built {
  if (ready !== undefined)
    return { url: pathToFileURL(join(ready, `${name}.mjs`)).href, remove: () => undefined }
  const folder = join(root, 'node_modules/.cache')
  mkdirSync(folder, { recursive: true })
  const outfile = join(folder, `statewright-${name}-${randomUUID()}.mjs`)
  buildSync({
    entryPoints: [join(root, `test/stores/children/${name}.ts`)],
    outfile,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
  })
  return { url: pathToFileURL(outfile).href, remove: () => rmSync(outfile, { force: true }) }
}

/** The prelude of every child: `fileStore`, records, and `say`, which writes one JSON line. */
const prelude = (url: string, dir: string): string => `
  import { writeSync } from 'node:fs'
  import { fileStore } from ${JSON.stringify(url)}
  const dir = ${JSON.stringify(dir)}
  const asked = { holder: 'run 1', ttlMs: 3_600_000 }
  const record = (seq, data = JSON.stringify({ seq })) =>
    ({ seq, at: 1_700_000_000_000 + seq, type: 'event', data, check: 'check-' + seq })
  const say = (value) => writeSync(1, JSON.stringify(value) + '\\n')
  const attempt = (work) => {
    try {
      return { value: work() ?? null }
    } catch (error) {
      return { code: error.code, message: error.message, name: error.name }
    }
  }
`

export interface Child {
  process: ChildProcess
  /** The next output line. Rejects when the child exits first. */
  next(): Promise<unknown>
  ended: Promise<{ code: number | null; signal: string | null; errors: string }>
}

/** Runs a script after the prelude in a separate Node process. `wrap` is a command prefix. */
export function startChild(url: string, dir: string, script: string, wrap: string[] = []): Child {
  const args = [...wrap, process.execPath, '--input-type=module', '-e', prelude(url, dir) + script]
  const [command = process.execPath, ...rest] = args
  const options: SpawnOptions = { cwd: root, stdio: ['pipe', 'pipe', 'pipe'] }
  const child = spawn(command, rest, options)

  const lines: unknown[] = []
  const waiting: { resolve: (line: unknown) => void; reject: (error: Error) => void }[] = []
  let partial = ''
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const parts = (partial + text).split('\n')
    partial = parts.pop() ?? ''
    for (const part of parts) {
      const line: unknown = JSON.parse(part)
      const first = waiting.shift()
      if (first) first.resolve(line)
      else lines.push(line)
    }
  })
  let isOver = false
  const over = () => new Error(`The child has ended. ${errors}`)
  const ended = new Promise<Awaited<Child['ended']>>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      isOver = true
      for (const { reject: fail } of waiting) fail(over())
      resolve({ code, signal, errors })
    })
  })

  const next = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (lines.length > 0) resolve(lines.shift())
      else if (isOver) reject(over())
      else waiting.push({ resolve, reject })
    })
  return { process: child, next, ended }
}
