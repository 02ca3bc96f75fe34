// Lets pages of AG-UI follow every generated path of the machine.
import { runSuite } from './suite.mjs'

runSuite(['--runInBand', 'test/agui/paths.test.ts', ...process.argv.slice(2)], { STATEWRIGHT_SUITE: 'chat' })
