// Builds dist: declarations by the compiler, code by the bundler. Bundled, the library is a few files instead of
// hundreds, which is what makes importing it cheap. Packages stay outside: apps share them with us, and have the same
// classes.
import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

// An old file left in dist would be published: start from nothing.
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) process.exit(1)

await build({
  absWorkingDir: root,
  entryPoints: [
    'src/index.ts',
    'src/rehearsal/index.ts',
    'src/testing/index.ts',
    'src/diagram/index.ts',
    'src/inspect/index.ts',
    'src/inspect/node.ts',
    'src/mcp/index.ts',
    'src/memory/index.ts',
    'src/ai-sdk/index.ts',
    'src/stores/index.ts',
    'src/stores/file/index.ts',
    'src/stores/postgres/index.ts',
    'src/cli/main.ts',
  ],
  outdir: 'dist',
  outbase: '.',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  mainFields: ['module', 'main'],
  packages: 'external',
  sourcemap: true,
  // The sources are in the package.
  sourcesContent: false,
})
chmodSync(new URL('../dist/src/cli/main.js', import.meta.url), 0o755)
