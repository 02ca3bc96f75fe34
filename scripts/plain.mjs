// Runs long test files in plain Node: node scripts/plain.mjs FILE… Compared to jest, pairs take a quarter less CPU,
// interpreter events half. plain-jest.mjs has the parts of jest that they use. To debug a failure, run `npm test --
// FILE -t NAME`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { readModule } from './read-module.mjs'
import { heapFlags } from './suite.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Inside the project, so that packages are found. */
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

/** Bundles a test file; `play(variables)` runs it and resolves with its exit code. */
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
    // Ignores `sideEffects` of our package.json.
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
  // oxlint-disable-next-line no-await-in-loop -- the output of each play stays together
  for (const play of plays) if ((await play()) !== 0) process.exitCode = 1
}
