// Runs the browser suite in Debian's Chromium. Without one, it is skipped; in CI it fails. `npm run suite -- browser
// FILE` runs one file, `-- -t NAME` the tests whose name matches.
import { fileURLToPath } from 'node:url'
import { needChromium } from './chromium.mjs'
import { installPackages } from './install-packages.mjs'
import { runSuite } from './suite.mjs'

const CHROMIUM = needChromium('Browser tests')
const args = process.argv.slice(2)
const chat = fileURLToPath(new URL('../examples/chat-react', import.meta.url))
const wantsChat =
  !args.some((arg) => arg.endsWith('.test.ts')) || args.some((arg) => arg.includes('chat-react'))
if (wantsChat && !installPackages(chat, 'vite'))
  console.log('The test of chat-react is skipped: npm ci in examples/chat-react did not succeed.')
const files = args.some((arg) => /^test\/browser\/|\.test\.ts$/.test(arg)) ? [] : ['test/browser']
runSuite([...files, ...args], { STATEWRIGHT_SUITE: 'browser', CHROMIUM })
