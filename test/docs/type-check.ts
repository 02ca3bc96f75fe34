import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as core from '../../src/index.js'
import { entryPaths, tsc } from '../types/declarations.js'
import { fromEntries, ownProgram } from './prelude.js'
import { root, type Snippet } from './snippets.js'

/**
 * The compiler errors of the snippets, by id. Valid snippets have no entry. The compiler has no API, so the snippets are written to
 * a folder in the tree, where packages resolve, and one compiler run checks all of them.
 */
export async function typeErrors(snippets: readonly Snippet[]): Promise<Record<string, string[]>> {
  const folder = join(root, 'test/docs', `.checked-${process.pid}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  try {
    const files = snippets.map((snippet, i) => ({ ...snippet, name: `snippet-${i}.${snippet.lang}` }))
    for (const { name, code } of files) writeFileSync(join(folder, name), `${code}\nexport {}\n`)
    writeFileSync(join(folder, 'prelude.d.ts'), prelude())
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: '../../../tsconfig.json',
        compilerOptions: { ...settings, paths: await entryPaths() },
        include: [],
        files: ['prelude.d.ts', ...files.map(({ name }) => name)],
      }),
    )
    const lines = (await tsc(folder)).split('\n').filter((line) => line.includes('error TS'))
    const named = [...files, { id: 'the prelude', name: 'prelude.d.ts' }]
    return Object.fromEntries(
      named.flatMap(({ id, name }) => {
        const messages = lines.filter((line) => line.startsWith(`${name}(`))
        return messages.length === 0 ? [] : [[id, messages] as const]
      }),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const settings = {
  // JavaScript is checked to the extent of its type annotations.
  allowJs: true,
  checkJs: true,
  noImplicitAny: false,
  allowUnusedLabels: true,
  noUnusedLocals: false,
  noUnusedParameters: false,
}

function prelude(): string {
  const own = Object.keys(core).map((name) => `var ${name}: typeof sw.${name}`)
  const others = Object.entries(fromEntries).map(
    ([name, entry]) => `var ${name}: typeof import('${entry}').${name}`,
  )
  const zod = `var z: typeof import('zod').z`
  const globals = [zod, ...own, ...others, ownProgram].join('\n')
  return `import type * as sw from 'statewright'\ndeclare global {\n${globals}\n}\nexport {}\n`
}
