#!/usr/bin/env node
import { isAbsolute } from 'node:path'
import { runCli } from './cli.js'
import { SigtermHandler } from './sigterm.js'
import { exitCodes } from './exit-codes.js'
import { waitForWrites } from './watch-output.js'

/** The bin: the process's own streams, signals and exit code around `runCli`. */

const interrupt = new AbortController()
const sigterm = new SigtermHandler()

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // A second signal ends the process at once: as left after SIGTERM, as cancelled after Ctrl-C.
    if (sigterm.hasArrived) process.exit(exitCodes.left)
    if (interrupt.signal.aborted) process.exit(exitCodes.cancelled)
    // Runs are started with this signal: aborting it cancels them.
    if (signal === 'SIGTERM' && sigterm.raise()) return
    interrupt.abort(new Error(`Interrupted (${signal}).`))
  })
}

// A closed pipe (`| head`) is not a crash; the command notices it by itself.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

// The event loop is empty, but the run has not ended: a tool's promise never settles.
process.on('beforeExit', () => {
  process.stderr.write(
    'statewright: the run hangs: a tool or module waits for a promise that never settles. ' +
      'Give the tool a timeoutMs, or the run a --timeout.\n',
  )
  process.exit(exitCodes.error)
})

const code = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  dataFolder: findDataFolder,
  signal: interrupt.signal,
  sigterm,
})

// Wait for the output; work that a tool left running does not keep the process alive.
await Promise.all([process.stdout, process.stderr].map(waitForWrites))
process.exit(code)

/**
 * The platform's folder for the user's data (`~/.local/share/statewright`, `XDG_DATA_HOME`, …); null for a user without a
 * home.
 */
async function findDataFolder(): Promise<string | null> {
  try {
    const { default: envPaths } = await import('env-paths')
    const { data } = envPaths('statewright', { suffix: '' })
    return isAbsolute(data) ? data : null
  } catch {
    // The system does not know the user.
    return null
  }
}
