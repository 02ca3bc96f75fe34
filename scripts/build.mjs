// Builds dist: declarations by the compiler, code by the bundler. Bundled, the library is a few files instead of
// hundreds, which is what makes importing it cheap. Packages stay outside: apps share them with us, and have the same
// classes.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
    'src/agui/index.ts',
    'src/otel/index.ts',
    'src/dbos/index.ts',
    'src/restate/index.ts',
    'src/stores/index.ts',
    'src/stores/file/index.ts',
    'src/stores/postgres/index.ts',
    'src/studio/index.ts',
    'src/ui/index.ts',
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
// What the studio shows in a browser: one script and one sheet, with all that they need in them.
await build({
  absWorkingDir: root,
  entryPoints: [
    { in: 'src/studio/client/main.tsx', out: 'client' },
    { in: 'src/studio/client/client.css', out: 'client' },
  ],
  outdir: 'dist/src/studio',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  platform: 'browser',
  jsx: 'automatic',
  jsxImportSource: 'preact',
})
chmodSync(new URL('../dist/src/cli/main.js', import.meta.url), 0o755)

// The page of the studio: all of it in one file of each kind, which the studio serves itself.
const page = 'src/studio/client/main.tsx'
if (existsSync(new URL(`../${page}`, import.meta.url))) {
  await build({
    absWorkingDir: root,
    entryPoints: [page],
    outfile: 'dist/src/studio/client.js',
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    legalComments: 'none',
  })
}

// What generated tests take of the chart, for the studio: the rest of that file is for whoever works on the chart.
const { states, transitions } = JSON.parse(
  readFileSync(new URL('../visualizations/agent.coverage.json', import.meta.url), 'utf8'),
)
const tested = {
  states: states.map(({ id, reached }) => ({ id, reached })),
  transitions: transitions.map(({ id, taken }) => ({ id, taken })),
}
writeFileSync(new URL('../dist/src/studio/tested.json', import.meta.url), JSON.stringify(tested))
