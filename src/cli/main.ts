#!/usr/bin/env node
import { runCli } from './cli.js'
import { findDataFolder } from './data-folder.js'
import { SigtermHandler } from './sigterm.js'
import { exitCodes } from './exit-codes.js'
import { waitForWrites } from './watch-output.js'

/** The bin: the process's own streams, signals and exit code around `runCli`. */

const interrupt = new AbortController()
const sigterm = new SigtermHandler()

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // The second one leaves at once.
    if (sigterm.hasArrived) process.exit(exitCodes.left)
    if (interrupt.signal.aborted) process.exit(exitCodes.cancelled)
    if (signal === 'SIGTERM' && sigterm.raise()) return
    interrupt.abort(new Error(`Interrupted (${signal}).`))
  })
}

// A reader that has gone (`| head`) is not a crash; the command notices it by itself.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

// Nothing can happen any more, and yet the run has not ended: a promise of a tool that nobody will ever settle.
process.on('beforeExit', () => {
  process.stderr.write(
    'statewright: the run stands still: a tool or module waits for something that can never happen. ' +
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

// Whatever a tool has left running does not keep the command alive; what was written gets through first.
await Promise.all([process.stdout, process.stderr].map(waitForWrites))
process.exit(code)
