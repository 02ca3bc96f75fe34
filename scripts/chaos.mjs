// Plays thousands of runs in chaos: node scripts/chaos.mjs [RUNS] [SEED] [PATH]. Default: 4000 runs of seed 1, for two
// minutes at most. SEED and PATH are what a failure prints.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [runs = '4000', seed = '1', path = ''] = process.argv.slice(2)
const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
const jest = join(root, 'node_modules/jest/bin/jest.js')
const { status } = spawnSync(process.execPath, [...flags, jest, '--runInBand', 'test/chaos'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, CHAOS_RUNS: runs, CHAOS_SEED: seed, CHAOS_PATH: path },
})
process.exit(status ?? 1)
