// Kills host processes of DBOS and Restate while they drive sessions. What this needs (the engines, their servers, a newer
// Node) is installed in test/hosts, by its own lock. Where that or Postgres cannot be had, it says so; in CI it fails.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { installPackages } from './install-packages.mjs'

const folder = fileURLToPath(new URL('../test/hosts', import.meta.url))
if (!installPackages(folder, '@restatedev/restate-server')) {
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
