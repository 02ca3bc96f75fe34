// Builds dist: declarations by the compiler, code by the bundler. Bundled, the library is a few files instead of
// hundreds, which is what makes importing it cheap. Packages stay outside: apps share them with us, and have the same
// classes.
import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

// `.ci/run` has built it for all of its steps.
if (process.env.STATEWRIGHT_BUILT) process.exit(0)

const root = fileURLToPath(new URL('..', import.meta.url))

/** Entries that are used without the core, in pages too: these bring no more of it than they need. */
const light = new Set(
  ['agui', 'ai-sdk', 'diagram', 'otel', 'ui', 'ui/client'].map((name) => `src/${name}/index.ts`),
)
/** So are these, but what any of them shares with the core is one file: apart, they would have the core in seven more. */
const small = new Set([
  'src/machine/index.ts',
  'src/memory/index.ts',
  'src/skills/elsewhere.ts',
  'src/skills/index.ts',
  'src/stores/index.ts',
  'src/stores/file/index.ts',
  'src/stores/postgres/index.ts',
])
/** Files that importing the core opens: each costs a third of a millisecond. */
const mostFiles = 24

/**
 * The bundler puts modules together that are needed by the very same entries, of which there are so many that the core
 * would be in eighty files. Whatever is used with the core anyway is told to need all of it, so that they are few.
 * `needs`: of each entry the modules that it is told to need.
 */
function withNeeds(needs) {
  return {
    name: 'needs',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^statewright:/ }, ({ path }) => ({
        path: fileURLToPath(new URL(`../${path.slice('statewright:'.length)}`, import.meta.url)),
        sideEffects: true,
      }))
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const entry = relative(root, path).replaceAll('\\', '/')
        const lines = (needs.get(entry) ?? []).map((need) => `import 'statewright:${need}'\n`)
        if (lines.length === 0) return undefined
        return { contents: `${readFileSync(path, 'utf8')}\n${lines.join('')}`, loader: 'ts' }
      })
    },
  }
}

/** The modules that are loaded with one. */
function modulesOf(path, inputs, modules = new Set([path])) {
  for (const { path: next, kind, external } of inputs[path].imports) {
    if (kind !== 'import-statement' || external || modules.has(next)) continue
    modulesOf(next, inputs, modules.add(next))
  }
  return modules
}

/** What is opened when a file is imported. */
function filesOf(path, outputs, files = new Set([path])) {
  for (const { path: next, kind, external } of outputs[path].imports) {
    if (kind !== 'import-statement' || external || files.has(next)) continue
    filesOf(next, outputs, files.add(next))
  }
  return files
}

// An old file left in dist would be published: start from nothing.
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) process.exit(1)

const code = {
  absWorkingDir: root,
  entryPoints: [
    'src/index.ts',
    'src/rehearsal/index.ts',
    'src/testing/index.ts',
    'src/diagram/index.ts',
    'src/machine/index.ts',
    'src/mcp/index.ts',
    'src/mcp/server/index.ts',
    'src/memory/index.ts',
    'src/skills/index.ts',
    'src/skills/elsewhere.ts',
    'src/fleet/index.ts',
    'src/ai-sdk/index.ts',
    'src/agui/index.ts',
    'src/otel/index.ts',
    'src/dbos/index.ts',
    'src/restate/index.ts',
    'src/stores/index.ts',
    'src/stores/file/index.ts',
    'src/stores/postgres/index.ts',
    'src/stores/durable-object/index.ts',
    'src/studio/index.ts',
    'src/ui/index.ts',
    'src/ui/client/index.ts',
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
}
const { metafile } = await build({ ...code, metafile: true, write: false })
// What is loaded first or by itself, as the bundler has found it.
const loaded = Object.values(metafile.outputs).flatMap(({ entryPoint }) =>
  entryPoint && !light.has(entryPoint) && !small.has(entryPoint) ? [entryPoint] : [],
)
const ofCore = modulesOf('src/index.ts', metafile.inputs)
const ofSmall = [...small].flatMap((path) => [...modulesOf(path, metafile.inputs)])
const shared = new Set(ofSmall.filter((path) => ofCore.has(path)))
const needs = new Map([
  ...loaded.filter((path) => path !== 'src/index.ts').map((path) => [path, ['src/index.ts']]),
  ...[...small].map((path) => [path, [...shared]]),
])

const built = await build({
  ...code,
  metafile: true,
  plugins: [withNeeds(needs)],
  // It counts where modules are put together, and brings no code.
  logOverride: { 'ignored-bare-import': 'silent' },
})
const files = filesOf('dist/src/index.js', built.metafile.outputs)
if (files.size > mostFiles)
  throw new Error(`Importing the core opens ${files.size} files: ${[...files].join(', ')}`)

const page = {
  absWorkingDir: root,
  outdir: 'dist/src/studio',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  platform: 'browser',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  drop: ['console'],
}
// What the studio shows in a browser. The comparison, the whole chart and the share menu are
// files of their own, which the page loads when they open.
await build({
  ...page,
  entryPoints: [
    { in: 'src/studio/client/main.tsx', out: 'client' },
    { in: 'src/studio/client/client.css', out: 'client' },
  ],
  splitting: true,
  chunkNames: 'client/[name]-[hash]',
})
// The same as one script, for the file that shows one session and loads nothing.
await build({ ...page, entryPoints: [{ in: 'src/studio/client/main.tsx', out: 'file' }] })
chmodSync(new URL('../dist/src/cli/main.js', import.meta.url), 0o755)

// What generated tests take of the chart, for the studio: the rest of that file is for developers of the chart.
const { states, transitions } = JSON.parse(
  readFileSync(new URL('../visualizations/agent.coverage.json', import.meta.url), 'utf8'),
)
const tested = {
  states: states.map(({ id, reached }) => ({ id, reached })),
  transitions: transitions.map(({ id, taken }) => ({ id, taken })),
}
writeFileSync(new URL('../dist/src/studio/tested.json', import.meta.url), JSON.stringify(tested))
