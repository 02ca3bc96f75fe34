// Kills DBOS and Restate processes while they drive sessions. The engines, their servers and a newer Node are
// installed in test/hosts. Without them or Postgres, it is skipped; in CI it fails.
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
