// Runs the tests: node scripts/test.mjs [JEST OPTIONS] [FILES]. With files, folders or watch mode, jest runs the files unchanged.
// Otherwise a few bundles replace the test files, because jest loads every module again for each file. The sources, xstate, rxjs,
// zod and openai took 0.4 to 0.6 s of CPU per file, a third of the total.
// In a bundle each file is a `describe` named after it. It has a separate copy of the modules under test/, with separate hooks and
// variables. Sources and packages are shared.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import config from '../jest.config.js'
import { readModule } from './read-module.mjs'
import { runSuite } from './suite.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const tests = join(root, 'test/')
const folder = join(root, '.tests')
/** Fewer files load the sources more often. More would leave a worker idle at the end. */
const filesPerBundle = 60
/**
 * In a bundle, these would mock modules or stop the clock for other files. A test also opts out with the comment "in a separate
 * file", which this expression matches.
 */
const needsOwnWorld = /unstable_mockModule|useFakeTimers|[Ii]n a separate file/
const plainOptions =
  /^(?:-[fo]|--(?:changed|collect|config|coverage|detect|find|last|list|only|project|run|shard|watch).*)$/
const optionsWithValue = /^(?:-[tw]|--(?:testNamePattern|maxWorkers|outputFile|reporters|testTimeout))$/

const args = process.argv.slice(2)
const isNamed = args.some((arg, i) => !arg.startsWith('-') && !optionsWithValue.test(args[i - 1]))
if (isNamed || args.some((arg) => plainOptions.test(arg))) runSuite(args)

/** The module in test/ that an import refers to. */
function findTestModule(specifier, from) {
  const path = join(from, specifier).replace(/\.js$/, '.ts')
  return path.startsWith(tests) && existsSync(path) ? path : undefined
}

const awaiting = new Map()
/** Top-level await cannot be inside a `describe`. */
function awaitsOutside(path) {
  const options = { loader: 'ts', supported: { 'top-level-await': false }, logLevel: 'silent' }
  const found =
    awaiting.get(path) ??
    transform(readModule(path), options).then(
      () => false,
      () => true,
    )
  awaiting.set(path, found)
  return found
}

/** Whether it uses top-level await, itself or through a module in test/. */
async function isAwaited(path, seen = new Set([path])) {
  if (await awaitsOutside(path)) return true
  for (const [, specifier] of readModule(path).matchAll(/ from '(\.[^']+)'/g)) {
    const next = findTestModule(specifier, dirname(path))
    if (next === undefined || seen.has(next)) continue
    if (await isAwaited(next, seen.add(next))) return true
  }
  return false
}

const ignored = config.testPathIgnorePatterns.map((pattern) =>
  pattern.replace('<rootDir>', root.slice(0, -1)),
)
const files = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  .map((file) => join(tests, file))
  .filter((file) => file.endsWith('.test.ts') && !ignored.some((pattern) => file.includes(pattern)))
  .sort()
const isApart = await Promise.all(
  files.map(async (file) => needsOwnWorld.test(readModule(file)) || isAwaited(file)),
)
const apart = files.filter((_, i) => isApart[i])
const together = files.filter((_, i) => !isApart[i])
// The slow files of a folder go to different bundles, so that all bundles take about the same time.
const count = Math.ceil(together.length / filesPerBundle)
const bundles = new Map(
  Array.from({ length: count }, (_, part) => [
    `part-${part + 1}`,
    together.filter((_, i) => i % count === part),
  ]),
)

/** Jest reads one timeout per bundle, so the longest of its files applies. */
function entryOf(list) {
  const described = list.map((file) => {
    const path = file.slice(root.length)
    return `describe('${path}', () => { require('./${path}'); timeouts.push(globalThis[timeout]); delete globalThis[timeout] })`
  })
  return [
    `const timeout = Symbol.for('TEST_TIMEOUT_SYMBOL'), timeouts = []`,
    ...described,
    `globalThis[timeout] = Math.max(...timeouts.map((ms) => ms ?? ${config.testTimeout}))`,
  ].join('\n')
}

const plugin = {
  name: 'test files',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^bundle:/ }, ({ path }) => ({ path, namespace: 'bundle' }))
    onLoad({ filter: /./, namespace: 'bundle' }, ({ path }) => ({
      contents: entryOf(bundles.get(path.slice('bundle:'.length))),
      resolveDir: root,
    }))
    onResolve({ filter: /^\..*\.mjs$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      external: true,
    }))
    onResolve({ filter: /^\./ }, ({ path, resolveDir, namespace, pluginData }) => {
      if (namespace !== 'bundle' && pluginData?.owner === undefined) return undefined
      const found = findTestModule(path, resolveDir)
      if (found === undefined) return undefined
      const owner = pluginData?.owner ?? found
      return { path: found, suffix: `?${owner}`, pluginData: { owner } }
    })
    onLoad({ filter: /\/(?:test|src|machines|guards)\/.*\.ts$/ }, ({ path, pluginData }) => ({
      contents: readModule(path),
      loader: 'ts',
      pluginData,
    }))
  },
}

rmSync(folder, { recursive: true, force: true })
await build({
  entryPoints: [...bundles.keys()].map((name) => ({ in: `bundle:${name}`, out: `${name}.test` })),
  absWorkingDir: root,
  outdir: folder,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'es2022',
  packages: 'external',
  // Jest reads the map only for stacks that it prints.
  sourcemap: true,
  sourcesContent: false,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  // Such an import only loads a module before the tests start.
  logOverride: { 'ignored-bare-import': 'silent' },
  plugins: [plugin],
})

/** Child programs of the tests, built once (test/stores/child.ts), with their packages, because many processes load them. */
const children = join(folder, 'children')
await build({
  entryPoints: readdirSync(join(tests, 'stores/children')).map((file) =>
    join(tests, 'stores/children', file),
  ),
  outdir: children,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  external: ['libsql'],
  // CommonJS packages load Node built-ins through `require`.
  banner: {
    js: `import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url)`,
  },
  logLevel: 'warning',
  logOverride: { 'ignored-bare-import': 'silent' },
})

const bundled = {
  ...config,
  rootDir: root,
  roots: ['<rootDir>/test', '<rootDir>/.tests'],
  testMatch: ['<rootDir>/.tests/*.test.js', ...apart],
}
const tallies = process.env.STATEWRIGHT_TESTS === 'all' ? [] : ['--silent']
runSuite(['--config', JSON.stringify(bundled), ...tallies, ...args], { STATEWRIGHT_CHILDREN: children })
