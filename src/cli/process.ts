import { isAbsolute } from 'node:path'
import { runCli } from './cli.js'
import { SigtermHandler } from './command.js'
import { exitCodes } from './exit-codes.js'
import { waitForWrites } from './output.js'

const interrupt = new AbortController()
const sigterm = new SigtermHandler()

/** These compute without a pause, so a signal handler would run only after their end. */
const computing = ['diagram', 'diff', 'paths', 'properties']

for (const signal of computing.includes(process.argv[2] ?? '') ? [] : (['SIGINT', 'SIGTERM'] as const)) {
  process.on(signal, () => {
    // A second signal ends the process at once.
    if (sigterm.hasArrived) process.exit(exitCodes.released)
    if (interrupt.signal.aborted) process.exit(exitCodes.cancelled)
    // Aborting this signal cancels the runs that were started with it.
    if (signal === 'SIGTERM' && sigterm.raise()) return
    interrupt.abort(new Error(`Interrupted (${signal}).`))
  })
}

// A closed pipe (`| head`) must not crash the process. The command detects it.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

// The event loop is empty although the run has not ended.
process.on('beforeExit', () => {
  process.stderr.write(
    'statewright: the run hangs: a tool or module is waiting for a promise that never settles. ' +
      'Set timeoutMs on the tool, or --timeout on the run.\n',
  )
  process.exit(exitCodes.error)
})

// Node 22 warns about its SQLite on every command, although the parts used here are stable.
const emitWarning = process.emitWarning.bind(process)
process.emitWarning = (warning: string | Error, ...rest: never[]) => {
  if (!String(warning).startsWith('SQLite is an experimental')) emitWarning(warning, ...rest)
}

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

// Work that a tool left running must not keep the process alive.
await Promise.all([process.stdout, process.stderr].map(waitForWrites))
process.exit(code)

/** The platform's folder for user data, such as `~/.local/share/statewright`. Null for a user without a home folder. */
async function findDataFolder(): Promise<string | null> {
  try {
    const { default: envPaths } = await import('env-paths')
    const { data } = envPaths('statewright', { suffix: '' })
    return isAbsolute(data) ? data : null
  } catch {
    return null
  }
}
