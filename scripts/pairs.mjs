// Plays every two features together: node scripts/pairs.mjs [SEED] ['FEATURE × FEATURE']. A seed draws other schedules.
import { runSuite } from './suite.mjs'

const [seed = '1', only] = process.argv.slice(2)
const which = only === undefined ? { PAIRS: 'whole' } : { PAIRS_ONLY: only }
runSuite(['--runInBand', 'test/pairs'], { PAIRS_SEED: seed, ...which })
