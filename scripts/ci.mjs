// Everything that main must pass, after `npm ci`: two steps at a time, one that computes and one that waits. A step prints when it
// ends. One that fails does not keep the next ones from running. The last lines name those and count the test run.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const report = join(mkdtempSync(join(tmpdir(), 'statewright-ci-')), 'tests.json')
// Each suite plays all of its tests, where a user's `npm test` takes a sample.
process.env.STATEWRIGHT_TESTS = 'all'
/** What computes, in several processes or in one: each takes what the other lane leaves of the cores. The longest first. */
const busy = [
  ['npm', 'test', '--', '--ci', '--json', `--outputFile=${report}`],
  'test:pairs',
  'test:simulation',
  'test:taint',
  'test:chat',
  'test:graph',
  'test:growth',
  'test:mutation',
  'test:principals',
  'test:interpreter',
  'check:generated',
  'lint',
  'check',
  'check:counts',
  'check:guards',
  'check:api',
  'format:check',
  'check:pictures',
]
/** What mostly waits: for processes that are killed, for pages, for installations and for clocks. The longest first. */
const waiting = [
  'test:browser',
  'test:crash',
  'test:site',
  'test:starters',
  'test:hosts',
  'test:mcp',
  'test:chaos',
  'test:latency',
  'test:runtimes',
  'check:declarations',
  'test:ai-sdk',
  'test:postgres',
  'check:pack',
  'check:package',
  'test:conformance',
  'test:pages',
  ['node', 'dist/src/cli/main.js', 'paths'],
]

const failed = []
/** Says in its last line what the step took of the processor, too: that, and not its waits, is what the other lane lacks. */
const timed = `TIMEFORMAT='-- %0R s, of the processor %0U + %0S s'; time "$0" "$@"`

function runStep([command, ...args]) {
  const name = [command, ...args].join(' ')
  console.log(`.. ${name}`)
  return new Promise((resolve) => {
    const output = []
    const child = spawn('bash', ['-c', timed, command, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data))
    child.once('error', (error) => output.push(Buffer.from(`${error.message}\n`)))
    child.once('close', (code) => {
      if (code !== 0) failed.push(name)
      process.stdout.write(`\n== ${name}\n${Buffer.concat(output).toString()}`)
      resolve()
    })
  })
}

/** Its own steps, and then those that the other lane has left. */
async function runLane(own, other) {
  for (let step = own.shift() ?? other.shift(); step; step = own.shift() ?? other.shift()) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other is what a lane is
    await runStep(typeof step === 'string' ? ['npm', 'run', '--silent', step] : step)
  }
}

await runStep(['npm', 'run', '--silent', 'build'])
process.env.STATEWRIGHT_BUILT = 'yes'
await Promise.all([runLane(busy, waiting), runLane(waiting, busy)])

for (const name of failed) console.log(`FAILED: ${name}`)
const { numPassedTests, numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(report, 'utf8'))
console.log(`${numPassedTests} passed, ${Math.max(numFailedTests, numFailedTestSuites)} failed`)
process.exitCode = failed.length > 0 ? 1 : 0
