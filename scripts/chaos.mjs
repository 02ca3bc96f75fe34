// Plays thousands of chaotic runs: node scripts/chaos.mjs [RUNS] [SEED] [PATH]. Default: 4000 runs with seed 1, for
// two minutes, or until each behavior was met if that is later. A failure prints SEED and PATH.
import { bundleTests } from './plain.mjs'

const [runs = '4000', seed = '1', path = ''] = process.argv.slice(2)
const play = await bundleTests('test/chaos/chaos.test.ts')
process.exitCode = await play({ CHAOS_RUNS: runs, CHAOS_SEED: seed, CHAOS_PATH: path })
