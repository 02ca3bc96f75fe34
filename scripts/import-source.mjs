import { mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Imports a TypeScript module of the project with all that it imports. */
export async function importSource(path) {
  // Inside the project, so that packages are found.
  const folder = join(root, 'node_modules/.cache/statewright')
  const outfile = join(folder, `${basename(path, '.ts')}-${process.pid}.mjs`)
  mkdirSync(folder, { recursive: true })
  await build({
    absWorkingDir: root,
    entryPoints: [path],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  })
  try {
    return await import(pathToFileURL(outfile).href)
  } finally {
    rmSync(outfile)
  }
}
