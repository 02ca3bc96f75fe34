import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Tests allocate much and keep little. A larger young generation saves a fifth of their time. They also run much code a few times.
 * V8 optimizes functions early, so fifteen times its budget saves another fifth. Only Node 20 accepts this option.
 */
export const engineFlags = [
  '--max-semi-space-size=64',
  ...(process.version.startsWith('v20.') ? ['--interrupt-budget=1000000'] : []),
]

/** Runs jest like `npm test`, with these files and variables, and exits with its code. */
export function runSuite(args, variables) {
  process.exit(jestStatus(args, variables))
}

/** Returns the exit code. */
export function jestStatus(jestArgs, variables) {
  const { command, args, options } = jestCommand(jestArgs, variables)
  return spawnSync(command, args, options).status ?? 1
}

/** The command line. */
export function jestCommand(args, variables) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  // Tests that expect warnings capture them. Printed, they would look like faults.
  const quiet = ['ExperimentalWarning', 'StatewrightWarning', 'JEST-01'].map(
    (warning) => `--disable-warning=${warning}`,
  )
  const flags = ['--experimental-vm-modules', ...quiet, ...engineFlags]
  const jest = join(root, 'node_modules/jest/bin/jest.js')
  return {
    command: process.execPath,
    args: [...flags, jest, ...args],
    options: { cwd: root, stdio: 'inherit', env: { ...process.env, ...variables } },
  }
}
