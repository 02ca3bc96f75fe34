// Runs the Postgres suite on a temporary server. Without Postgres, it is skipped.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownPostgres } from './own-postgres.mjs'
import { jestCommand } from './suite.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const server = await ownPostgres()
if (server === null) {
  console.log(
    'Postgres tests skipped: there is no Postgres here, and it cannot be installed without root and apt-get.',
  )
  process.exit(0)
}

// Or a program: node scripts/postgres.mjs bench/postgres.mjs
const [program, ...rest] = process.argv.slice(2)
const what = program?.endsWith('.mjs')
  ? [join(root, program), ...rest]
  : jestCommand(['test/postgres', ...process.argv.slice(2)]).args
const suite = spawn(process.execPath, what, {
  cwd: root,
  stdio: 'inherit',
  // A separate process group, so that Ctrl-C reaches this script first.
  detached: true,
  env: { ...process.env, STATEWRIGHT_SUITE: 'postgres', STATEWRIGHT_TEST_POSTGRES: server.url },
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => suite.kill('SIGINT'))
const status = await new Promise((resolve) => {
  suite.once('exit', (code) => resolve(code ?? 1))
  suite.once('error', () => resolve(1))
})
await server.stop()
process.exit(status)
