import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Installs a folder's lock file unless the wanted package exists. Returns false on failure. */
export function installPackages(folder, wanted) {
  if (existsSync(`${folder}/node_modules/${wanted}`)) return true
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error']
  const options = { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }
  return spawnSync('npm', ['ci', ...flags], options).status === 0
}
