// A temporary Postgres server, with a new cluster in a temporary folder on a free local port. It is deleted when stopped.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const isRoot = process.getuid?.() === 0

/** The programs of the newest installed Postgres, or null. */
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

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Null if Postgres is not installed and cannot be. `kill` crashes it, `start` restarts it. `preload` is a library to load at start. */
export async function ownPostgres({ preload = '' } = {}) {
  const programs = findPrograms() ?? installPrograms()
  const user = unprivileged()
  if (programs === null || user === null) return null
  const folder = mkdtempSync(join(tmpdir(), 'statewright-postgres-'))
  const password = randomBytes(12).toString('hex')
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
  const outcome = spawnSync(join(programs, 'initdb'), [...initialise, '--locale=C', '--no-sync'], {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (outcome.status !== 0) throw new Error('initdb failed.')

  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'fsync=off',
  ]
  settings.push('logging_collector=on', `log_directory=${join(folder, 'log')}`, 'max_connections=300')
  settings.push(`shared_preload_libraries=${preload}`)
  let server
  const end = async (signal) => {
    const ended = server && server.exitCode === null && new Promise((resolve) => server.once('exit', resolve))
    server?.kill(signal)
    await ended
  }
  const start = async () => {
    // A separate process group, so that Ctrl-C reaches this script first.
    server = spawn(
      join(programs, 'postgres'),
      ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
      { ...user, cwd: folder, stdio: 'ignore', detached: true },
    )
    const ready = () =>
      spawnSync(join(programs, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', `${port}`]).status === 0
    while (!ready()) {
      if (server.exitCode !== null) throw new Error('The Postgres server did not start.')
      await sleep(100)
    }
  }
  await start()
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    start,
    /** SIGQUIT stops it at once; it recovers at the next start. */
    kill: () => end('SIGQUIT'),
    stop: async () => {
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
