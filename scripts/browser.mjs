// Runs the suite of real browsers against Debian's chromium. Where there is none and none can be installed, it says so
// and succeeds; in CI it fails.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { runSuite } from './suite.mjs'

function findChromium() {
  return [process.env.CHROMIUM, '/usr/bin/chromium'].find((path) => path && existsSync(path))
}

function installChromium() {
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) return undefined
  console.log('Installing chromium with apt-get.')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { env, stdio: ['ignore', 'ignore', 'inherit'] }
  spawnSync('apt-get', ['update', '-qq'], options)
  spawnSync('apt-get', ['install', '-qq', '-y', '--no-install-recommends', 'chromium'], options)
  return findChromium()
}

const chromium = findChromium() ?? installChromium()
if (chromium === undefined) {
  const what = process.env.CI === 'true' ? 'failed' : 'skipped'
  console.log(
    `Browser tests ${what}: there is no chromium here (CHROMIUM, /usr/bin/chromium), and it cannot be installed without root and apt-get.`,
  )
  process.exit(what === 'failed' ? 1 : 0)
}

runSuite(['test/browser', ...process.argv.slice(2)], { STATEWRIGHT_SUITE: 'browser', CHROMIUM: chromium })
