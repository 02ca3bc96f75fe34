// Starts the studio over rehearsed sessions, from the sources: node scripts/studio.mjs [PORT]. The page's own code is that
// of the last build.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(root, 'node_modules/.studio-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.on('SIGINT', () => process.exit(0))

const outfile = join(folder, 'look.mjs')
await build({
  absWorkingDir: root,
  entryPoints: ['test/studio/look.ts'],
  outfile,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  platform: 'node',
  packages: 'external',
})
await import(pathToFileURL(outfile).href)
