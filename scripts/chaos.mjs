// Plays thousands of runs in chaos: node scripts/chaos.mjs [RUNS] [SEED] [PATH]. Default: 4000 runs of seed 1, for two
// minutes at most. SEED and PATH are what a failure prints.
import { runSuite } from './suite.mjs'

const [runs = '4000', seed = '1', path = ''] = process.argv.slice(2)
runSuite(['--runInBand', 'test/chaos'], { CHAOS_RUNS: runs, CHAOS_SEED: seed, CHAOS_PATH: path })
