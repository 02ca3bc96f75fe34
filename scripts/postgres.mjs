// Runs the Postgres suite against a server of its own: a new cluster in a temporary folder, on a free port of 127.0.0.1,
// gone when the tests are. Where there is no Postgres and none can be installed, it says so and succeeds.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const isRoot = process.getuid?.() === 0

/** The programs of the newest Postgres here, or null. */
function findPrograms() {
  const versions = '/usr/lib/postgresql'
  const debian = existsSync(versions)
    ? readdirSync(versions)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(versions, version, 'bin'))
    : []
  const folders = [...debian, ...(process.env.PATH ?? '').split(':')]
  return folders.find((folder) => existsSync(join(folder, 'initdb'))) ?? null
}

function installPrograms() {
  if (!isRoot || spawnSync('apt-get', ['--version']).status !== 0) return null
  console.log('Installing Postgres with apt-get.')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { env, stdio: ['ignore', 'ignore', 'inherit'] }
  spawnSync('apt-get', ['update', '-qq'], options)
  spawnSync('apt-get', ['install', '-qq', '-y', '--no-install-recommends', 'postgresql'], options)
  return findPrograms()
}

/** Postgres refuses to run as root. */
function unprivileged() {
  if (!isRoot) return {}
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }))
    if (uid.status === 0 && gid.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  }
  return null
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

const programs = findPrograms() ?? installPrograms()
const user = unprivileged()
if (programs === null || user === null) {
  console.log(
    'Postgres tests skipped: there is no Postgres here, and it cannot be installed without root and apt-get.',
  )
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), 'statewright-postgres-'))
const password = randomBytes(12).toString('hex')
const children = []

function start(command, args, options) {
  // A group of its own: Ctrl-C reaches this script, which ends things in order.
  const child = spawn(command, args, { cwd: folder, stdio: 'inherit', detached: true, ...options })
  child.ended = new Promise((resolve) => {
    child.once('exit', (code) => resolve(code ?? 1))
    child.once('error', () => resolve(1))
  })
  children.push(child)
  return child
}

async function run() {
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (user.uid !== undefined) chownSync(passwordFile, user.uid, user.gid)

  const initialise = [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    '--pwfile',
    passwordFile,
    '-E',
    'UTF8',
  ]
  const made = await start(join(programs, 'initdb'), [...initialise, '--locale=C', '--no-sync'], {
    ...user,
    stdio: ['ignore', 'ignore', 'inherit'],
  }).ended
  if (made !== 0) return made

  const port = await freePort()
  const log = join(folder, 'log')
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'fsync=off',
  ]
  settings.push('logging_collector=on', `log_directory=${log}`, 'max_connections=300')
  const server = start(
    join(programs, 'postgres'),
    ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    { ...user, stdio: 'ignore' },
  )
  let ended = false
  void server.ended.then(() => (ended = true))
  const ready = () =>
    spawnSync(join(programs, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', `${port}`]).status === 0
  while (!ready()) {
    if (ended) {
      console.error('The Postgres server did not start.')
      return 1
    }
    await sleep(100)
  }

  const jest = join(root, 'node_modules/jest/bin/jest.js')
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
  return start(process.execPath, [...flags, jest, 'test/postgres', ...process.argv.slice(2)], {
    cwd: root,
    env: {
      ...process.env,
      STATEWRIGHT_SUITE: 'postgres',
      STATEWRIGHT_TEST_POSTGRES: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    },
  }).ended
}

/** The last that was started ends first; SIGINT is a fast shutdown to Postgres. */
async function stop() {
  for (const child of children.reverse()) {
    child.kill('SIGINT')
    await child.ended
  }
  rmSync(folder, { recursive: true, force: true })
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => void stop().then(() => process.exit(130)))
}

let status = 1
try {
  status = await run()
} finally {
  await stop()
}
process.exit(status)
