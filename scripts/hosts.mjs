// Kills host processes of DBOS and Restate while they drive sessions. What this needs (the engines, their servers, a newer
// Node) is installed in test/hosts, by its own lock. Where that or Postgres cannot be had, it says so; in CI it fails.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../test/hosts', import.meta.url))
const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error']
const isThere =
  existsSync(`${folder}/node_modules/@restatedev/restate-server`) ||
  spawnSync('npm', ['ci', ...flags], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
if (!isThere) {
  const isCI = process.env.CI === 'true'
  console.log(`Tests of the hosts ${isCI ? 'failed' : 'skipped'}: npm ci in test/hosts did not succeed.`)
  process.exit(isCI ? 1 : 0)
}
const { status } = spawnSync(process.execPath, ['main.mjs', ...process.argv.slice(2)], {
  cwd: folder,
  stdio: 'inherit',
  env: { ...process.env, NODE_NO_WARNINGS: '1' },
})
process.exit(status ?? 1)
