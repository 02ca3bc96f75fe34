// Builds dist as it is packed: code and declarations in one file per entry and shared chunks. A few bundles load much faster than
// hundreds of files. Packages stay external, so that apps share them and their classes.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'

// `.ci/run` builds once for all steps.
if (process.env.STATEWRIGHT_BUILT) process.exit(0)

const root = fileURLToPath(new URL('..', import.meta.url))

/** Entries used without the core, also in pages. They bundle only their dependencies. */
const light = new Set([
  ...['agui', 'ai-sdk', 'diagram', 'otel', 'ui', 'ui/client'].map((name) => `src/${name}/index.ts`),
  'src/cli/main.ts',
])
/** The same, but shared core code goes into one file instead of seven copies. */
const small = new Set([
  'src/machine/index.ts',
  'src/memory/index.ts',
  'src/skills/elsewhere.ts',
  'src/skills/index.ts',
  'src/stores/index.ts',
  'src/stores/file/index.ts',
  'src/stores/postgres/index.ts',
])
/** Maximum number of files that importing the core opens. Each costs a third of a millisecond. */
const mostFiles = 24

/**
 * The bundler groups modules by the set of entries that need them, which would split the core into eighty files.
 * Declaring that some modules need the whole core reduces them to a few. `needs`: extra modules per entry.
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

/** The modules loaded with a module. */
function modulesOf(path, inputs, modules = new Set([path])) {
  for (const { path: next, kind, external } of inputs[path].imports) {
    if (kind !== 'import-statement' || external || modules.has(next)) continue
    modulesOf(next, inputs, modules.add(next))
  }
  return modules
}

/** The files opened when a file is imported. */
function filesOf(path, outputs, files = new Set([path])) {
  for (const { path: next, kind, external } of outputs[path].imports) {
    if (kind !== 'import-statement' || external || files.has(next)) continue
    filesOf(next, outputs, files.add(next))
  }
  return files
}

// Old files in dist would be published.
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })

/**
 * The compiler writes one declaration per module, and the bundler joins them and leaves out internal ones. The types are checked only
 * with `--check`, which takes three times as long.
 */
async function buildDeclarations() {
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true })
  const outDir = mkdtempSync(join(root, 'node_modules/.cache/declarations-'))
  try {
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const args = [tsc, '-p', 'tsconfig.build.json', '--outDir', outDir]
    if (!process.argv.includes('--check')) args.push('--noCheck')
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
    if (status !== 0) process.exit(1)
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const names = Object.values(exports).flatMap(
      ({ types }) => types?.replace(/^\.\/dist\/|\.ts$/g, '') ?? [],
    )
    const bundle = await rolldown({
      cwd: root,
      input: Object.fromEntries(names.map((name) => [name, join(outDir, `${name}.ts`)])),
      external: /^[^./]/,
      plugins: [dts({ dtsInput: true })],
    })
    await bundle.write({
      dir: join(root, 'dist'),
      entryFileNames: '[name].ts',
      chunkFileNames: 'chunks/[name]-[hash].d.ts',
    })
  } finally {
    rmSync(outDir, { recursive: true, force: true })
  }
}

await buildDeclarations()

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
    'src/durable/index.ts',
    'src/fleet/index.ts',
    'src/ai-sdk/index.ts',
    'src/agui/index.ts',
    'src/otel/index.ts',
    'src/cedar/index.ts',
    'src/opa/index.ts',
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
    'src/cli/process.ts',
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
}
const { metafile } = await build({ ...code, metafile: true, write: false })
// Modules that are loaded first or alone, according to the bundler.
const loaded = Object.values(metafile.outputs).flatMap(({ entryPoint }) =>
  entryPoint && !light.has(entryPoint) && !small.has(entryPoint) ? [entryPoint] : [],
)
const ofCore = modulesOf('src/index.ts', metafile.inputs)
const ofSmall = [...small].flatMap((path) => [...modulesOf(path, metafile.inputs)])
const shared = new Set(ofSmall.filter((path) => ofCore.has(path)))
// An entry without the core would load it through a module that the core loads on use.
const ofLight = new Set([...light].flatMap((path) => [...modulesOf(path, metafile.inputs)]))
const alone = loaded.filter((path) => path !== 'src/index.ts' && !ofLight.has(path))
const needs = new Map([
  ...alone.map((path) => [path, ['src/index.ts']]),
  ...[...small].map((path) => [path, [...shared]]),
])

const built = await build({
  ...code,
  metafile: true,
  plugins: [withNeeds(needs)],
  // The import only affects grouping.
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
// The studio's browser code. The comparison, the chart and the share menu are loaded on demand.
await build({
  ...page,
  entryPoints: [
    { in: 'src/studio/client/main.tsx', out: 'client' },
    { in: 'src/studio/client/client.css', out: 'client' },
  ],
  splitting: true,
  chunkNames: 'client/[name]-[hash]',
})
// The same as one script, for the standalone file with one session.
await build({ ...page, entryPoints: [{ in: 'src/studio/client/main.tsx', out: 'file' }] })
chmodSync(new URL('../dist/src/cli/main.js', import.meta.url), 0o755)

// The generated coverage that the studio's chart page shows.
const visualizations = join(root, 'visualizations')
const chart = join(root, 'dist/src/studio/chart')
mkdirSync(chart)
const { states, transitions } = JSON.parse(readFileSync(join(visualizations, 'agent.coverage.json'), 'utf8'))
const tested = {
  states: states.map(({ id, reached }) => ({ id, reached })),
  transitions: transitions.map(({ id, count }) => ({ id, count })),
}
writeFileSync(join(chart, 'agent.coverage.json'), JSON.stringify(tested))
