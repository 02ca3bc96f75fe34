// Opens files in the API of TypeScript 7, which is still unstable and may change with each version.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { API } from 'typescript/unstable/sync'

/** Calls `read` with a project of the files, and returns its result. */
export function readProject(root, files, read) {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-types-'))
  const config = join(folder, 'tsconfig.json')
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    noEmit: true,
    skipLibCheck: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    types: [],
  }
  writeFileSync(config, JSON.stringify({ compilerOptions, files }))
  const api = new API({ cwd: root })
  try {
    return read(api.updateSnapshot({ openProjects: [config] }).getProject(config))
  } finally {
    api.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
