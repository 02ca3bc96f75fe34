import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The entry points by their import names. */
export const entries: Readonly<Record<string, string>> = {
  statewright: 'src/index.ts',
  'statewright/testing': 'src/testing/index.ts',
  'statewright/agui': 'src/agui/index.ts',
  'statewright/ai-sdk': 'src/ai-sdk/index.ts',
  'statewright/rehearsal': 'src/rehearsal/index.ts',
  'statewright/cedar': 'src/cedar/index.ts',
  'statewright/opa': 'src/opa/index.ts',
  'statewright/dbos': 'src/dbos/index.ts',
  'statewright/otel': 'src/otel/index.ts',
  'statewright/restate': 'src/restate/index.ts',
  'statewright/stores': 'src/stores/index.ts',
  'statewright/stores/file': 'src/stores/file/index.ts',
  'statewright/stores/postgres': 'src/stores/postgres/index.ts',
  'statewright/stores/durable-object': 'src/stores/durable-object/index.ts',
  'statewright/memory': 'src/memory/index.ts',
  'statewright/skills': 'src/skills/index.ts',
  'statewright/durable': 'src/durable/index.ts',
  'statewright/fleet': 'src/fleet/index.ts',
  'statewright/machine': 'src/machine/index.ts',
  'statewright/mcp': 'src/mcp/index.ts',
  'statewright/mcp/server': 'src/mcp/server/index.ts',
  'statewright/diagram': 'src/diagram/index.ts',
  'statewright/studio': 'src/studio/index.ts',
  'statewright/ui': 'src/ui/index.ts',
  'statewright/ui/client': 'src/ui/client/index.ts',
}

/** The compiler's output for the project in a folder, with file names relative to that folder. */
export async function tsc(folder: string): Promise<string> {
  const bin = join(root, 'node_modules/typescript/bin/tsc')
  const run = promisify(execFile)(process.execPath, [bin, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
    maxBuffer: 10_000_000,
  })
  return run.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  )
}

const cache = join(root, 'node_modules/.cache')
const stored = 'statewright-declarations-'

/**
 * The `paths` of a tsconfig whose programs use the package through its declarations, like users. The sources are checked elsewhere,
 * because this takes the compiler ten times as long. The declarations are written once for all tests, and again after a source
 * changes.
 */
export async function entryPaths(): Promise<Record<string, [string]>> {
  const folder = join(cache, `${stored}${await sourceHash()}`)
  if (!existsSync(folder)) await writeDeclarations(folder)
  return Object.fromEntries(
    Object.entries(entries).map(([name, file]) => [name, [join(folder, file.replace(/\.ts$/, '.d.ts'))]]),
  )
}

async function sourceHash(): Promise<string> {
  const hash = createHash('sha256')
  const take = async (file: string) => hash.update(`${file}\n`).update(await readFile(join(root, file)))
  for (const file of ['package-lock.json', 'tsconfig.json']) await take(file)
  for (const room of ['src', 'machines', 'guards']) {
    const files = await readdir(join(root, room), { recursive: true })
    for (const file of files.filter((name) => name.endsWith('.ts')).sort()) await take(join(room, file))
  }
  return hash.digest('hex').slice(0, 16)
}

/** Two tests may write them concurrently. The first to finish wins. */
async function writeDeclarations(folder: string): Promise<void> {
  await mkdir(cache, { recursive: true })
  const old = (await readdir(cache)).filter((name) => name.startsWith(stored))
  const outDir = await mkdtemp(join(cache, 'writing-'))
  const tsconfig = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir,
      types: ['node'],
    },
    include: [],
    files: Object.values(entries).map((file) => join(root, file)),
  }
  await writeFile(join(outDir, 'package.json'), '{ "type": "module" }')
  await writeFile(join(outDir, 'tsconfig.json'), JSON.stringify(tsconfig))
  const errors = await tsc(outDir)
  if (errors !== '') throw new Error(`The declarations cannot be written: ${errors}`)
  await rename(outDir, folder).catch(() => rm(outDir, { recursive: true, force: true }))
  for (const name of old) await rm(join(cache, name), { recursive: true, force: true })
}
