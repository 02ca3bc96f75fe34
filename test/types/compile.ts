import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Complaint {
  /** `TS2322`. */
  code: string
  message: string
}

/** The entry points by the name under which they are imported. */
export const entries: Readonly<Record<string, string>> = {
  statewright: 'src/index.ts',
  'statewright/testing': 'src/testing/index.ts',
  'statewright/agui': 'src/agui/index.ts',
  'statewright/ai-sdk': 'src/ai-sdk/index.ts',
  'statewright/rehearsal': 'src/rehearsal/index.ts',
  'statewright/dbos': 'src/dbos/index.ts',
  'statewright/otel': 'src/otel/index.ts',
  'statewright/restate': 'src/restate/index.ts',
  'statewright/stores': 'src/stores/index.ts',
  'statewright/stores/file': 'src/stores/file/index.ts',
  'statewright/stores/postgres': 'src/stores/postgres/index.ts',
  'statewright/memory': 'src/memory/index.ts',
  'statewright/mcp': 'src/mcp/index.ts',
  'statewright/diagram': 'src/diagram/index.ts',
  'statewright/inspect': 'src/inspect/index.ts',
  'statewright/inspect/node': 'src/inspect/node.ts',
  'statewright/studio': 'src/studio/index.ts',
  'statewright/ui': 'src/ui/index.ts',
}

/** What the compiler says about each of these modules, in order; none for one that it has nothing against. */
export async function compile(modules: readonly string[]): Promise<Complaint[][]> {
  const folder = await mkdtemp(join(tmpdir(), 'statewright-types-'))
  try {
    const paths = Object.fromEntries(
      Object.entries(entries).map(([name, file]) => [name, [join(root, file)]]),
    )
    const tsconfig = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { paths, types: ['node'], noUnusedLocals: false, noUnusedParameters: false },
      include: ['.'],
    }
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
    await Promise.all(modules.map((code, index) => writeFile(join(folder, `module${index}.ts`), code)))
    const said = complaintsIn(await tsc(folder))
    return modules.map((_, index) => said.get(`module${index}.ts`) ?? [])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function tsc(folder: string): Promise<string> {
  const bin = join(root, 'node_modules/typescript/bin/tsc')
  const run = promisify(execFile)(process.execPath, [bin, '-p', folder, '--pretty', 'false'], {
    maxBuffer: 10_000_000,
  })
  return run.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  )
}

/** By file. What is indented explains the line before. */
function complaintsIn(output: string): Map<string, Complaint[]> {
  const said = new Map<string, Complaint[]>()
  const form = /^(?:.*\/)?(\w+\.ts)\(\d+,\d+\): error (TS\d+): (.*(?:\n .*)*)/gm
  for (const [, file = '', code = '', message = ''] of output.matchAll(form))
    said.set(file, [...(said.get(file) ?? []), { code, message }])
  return said
}
