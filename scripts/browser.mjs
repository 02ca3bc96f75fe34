// Runs the suite of real browsers against Debian's chromium. Where there is none and none can be installed, it says so
// and succeeds; in CI it fails.
import { needChromium } from './chromium.mjs'
import { runSuite } from './suite.mjs'

const CHROMIUM = needChromium('Browser tests')
runSuite(['test/browser', ...process.argv.slice(2)], { STATEWRIGHT_SUITE: 'browser', CHROMIUM })
