// Plays every two features together: node scripts/pairs.mjs [SEED] ['FEATURE × FEATURE']. A seed draws other schedules.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [seed = '1', only] = process.argv.slice(2)
const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
const jest = join(root, 'node_modules/jest/bin/jest.js')
const which = only === undefined ? { PAIRS: 'whole' } : { PAIRS_ONLY: only }
const { status } = spawnSync(process.execPath, [...flags, jest, '--runInBand', 'test/pairs'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PAIRS_SEED: seed, ...which },
})
process.exit(status ?? 1)
