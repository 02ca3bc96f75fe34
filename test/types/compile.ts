import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { entryPaths, root, tsc } from './declarations.js'

export interface Complaint {
  /** `TS2322`. */
  code: string
  message: string
}

/** The compiler errors of each of these modules, in order. Empty for a valid module. */
export async function compile(modules: readonly string[]): Promise<Complaint[][]> {
  const folder = await mkdtemp(join(tmpdir(), 'statewright-types-'))
  try {
    const tsconfig = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        paths: await entryPaths(),
        types: ['node'],
        noUnusedLocals: false,
        noUnusedParameters: false,
      },
      include: ['.'],
    }
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
    await Promise.all(modules.map((code, index) => writeFile(join(folder, `module${index}.ts`), code)))
    const errors = complaintsIn(await tsc(folder))
    return modules.map((_, index) => errors.get(`module${index}.ts`) ?? [])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** By file. An indented line continues the previous one. */
function complaintsIn(output: string): Map<string, Complaint[]> {
  const errors = new Map<string, Complaint[]>()
  const form = /^(?:.*\/)?(\w+\.ts)\(\d+,\d+\): error (TS\d+): (.*(?:\n .*)*)/gm
  for (const [, file = '', code = '', message = ''] of output.matchAll(form))
    errors.set(file, [...(errors.get(file) ?? []), { code, message }])
  return errors
}
