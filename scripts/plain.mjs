// Runs test files that compute for minutes in plain Node: node scripts/plain.mjs FILE…
// The pairs took a quarter less CPU so than by jest, the interpreter's events half. What the tests use of jest is in plain-jest.mjs.
// A failure names its test: `npm test -- FILE -t NAME` runs that
// one by jest, with its lines in the sources.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { readModule } from './read-module.mjs'
import { heapFlags } from './suite.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Inside the project: packages are found from there. */
const folder = join(root, 'node_modules/.cache/statewright')
const globals = join(root, 'scripts/plain-jest.mjs')

const plugin = {
  name: 'without jest',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^@jest\/globals$/ }, () => ({ path: globals }))
    onLoad({ filter: /\/(?:test|src|machines|guards|spec)\/.*\.ts$/ }, ({ path }) => ({
      contents: readModule(path),
      loader: 'ts',
    }))
  },
}

/** Makes one program of a test file and all that it imports; `play(variables)` runs it, and resolves with its exit code. */
export async function bundleTests(file) {
  mkdirSync(folder, { recursive: true })
  const program = join(folder, `${basename(file, '.ts')}-${process.pid}.mjs`)
  process.on('exit', () => rmSync(program, { force: true }))
  await build({
    stdin: {
      contents: [
        `import { runTests } from './scripts/plain-jest.mjs'`,
        `import './test/support/set-runs.ts'`,
        `import './${file}'`,
        `await runTests('${file}')`,
      ].join('\n'),
      resolveDir: root,
    },
    absWorkingDir: root,
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'es2022',
    packages: 'external',
    // Of our package.json, which says that modules without exports do nothing.
    ignoreAnnotations: true,
    logLevel: 'warning',
    plugins: [plugin],
  })
  return async (variables) => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...heapFlags, program], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, ...variables },
    })
    const [code] = await once(child, 'close')
    return code ?? 1
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const plays = await Promise.all(process.argv.slice(2).map(bundleTests))
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (const play of plays) if ((await play()) !== 0) process.exitCode = 1
}
