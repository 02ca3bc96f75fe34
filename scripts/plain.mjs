// Runs long test files in plain Node: node scripts/plain.mjs [--together] FILE… Together they share a process and
// its modules. Compared to jest, pairs take a quarter less CPU,
// interpreter events half. plain-jest.mjs has the parts of jest that they use. To debug a failure, run `npm test --
// FILE -t NAME`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { readModule } from './read-module.mjs'
import { engineFlags } from './suite.mjs'

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

/** Bundles test files; `play(variables)` runs them and resolves with the exit code. */
export async function bundleTests(...files) {
  mkdirSync(folder, { recursive: true })
  const program = join(folder, `${basename(files[0], '.ts')}-${process.pid}.mjs`)
  process.on('exit', () => rmSync(program, { force: true }))
  await build({
    stdin: {
      contents: [
        `import { runTests } from './scripts/plain-jest.mjs'`,
        `import './test/support/set-runs.ts'`,
        ...files.map((file) => `import './${file}'`),
        `await runTests('${files.join(' ')}')`,
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
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', ...engineFlags, program],
      {
        cwd: root,
        stdio: 'inherit',
        env: { ...process.env, ...variables },
      },
    )
    const [code] = await once(child, 'close')
    return code ?? 1
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [first, ...rest] = process.argv.slice(2)
  const groups = first === '--together' ? [rest] : [first, ...rest].map((file) => [file])
  const plays = await Promise.all(groups.map((files) => bundleTests(...files)))
  // The output of each play stays together.
  for (const play of plays) if ((await play()) !== 0) process.exitCode = 1
}
