// Runs the suite of real browsers against Debian's chromium. Where there is none and none can be installed, it says so
// and succeeds; in CI it fails. `npm run test:browser -- FILE` runs one file, `-- -t NAME` the tests whose name has these words.
import { needChromium } from './chromium.mjs'
import { runSuite } from './suite.mjs'

const CHROMIUM = needChromium('Browser tests')
const args = process.argv.slice(2)
const files = args.some((arg) => /^test\/browser\/|\.test\.ts$/.test(arg)) ? [] : ['test/browser']
runSuite([...files, ...args], { STATEWRIGHT_SUITE: 'browser', CHROMIUM })
