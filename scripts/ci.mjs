// Everything that main must pass, after `npm ci`: two steps at a time, because most use one core; then the test run. A step prints when it
// ends. One that fails does not keep the next ones from running. The last lines name those and count the test run.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const report = join(mkdtempSync(join(tmpdir(), 'statewright-ci-')), 'tests.json')
/** The longest first, so that neither lane waits for the other at the end. */
const lanes = [
  'test:mutation',
  'test:pairs',
  'test:crash',
  'test:hosts',
  'test:taint',
  'test:browser',
  'test:simulation',
  'test:chaos',
  'test:postgres',
  'test:graph',
  'test:interpreter',
  'test:growth',
  'test:principals',
  'test:chat',
  'test:site',
  'test:mcp',
  'test:conformance',
  'test:ai-sdk',
  'test:starters',
  'test:runtimes',
  'test:latency',
  'test:pages',
  'check:counts',
  'check:declarations',
  'check:guards',
  'check:generated',
  'check:api',
  'check:pack',
  'check:package',
  'check:pictures',
  'check',
  'lint',
  'format:check',
].map((name) => ['npm', 'run', '--silent', name])
lanes.push(['node', 'dist/src/cli/main.js', 'paths'])

const failed = []

function runStep([command, ...args], variables = {}) {
  const name = [command, ...args].join(' ')
  const begun = Date.now()
  console.log(`.. ${name}`)
  return new Promise((resolve) => {
    const output = []
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data))
    child.once('error', (error) => output.push(Buffer.from(`${error.message}\n`)))
    child.once('close', (code) => {
      if (code !== 0) failed.push(name)
      const seconds = Math.round((Date.now() - begun) / 1000)
      process.stdout.write(`\n== ${name}\n${Buffer.concat(output).toString()}-- ${seconds} s\n`)
      resolve()
    })
  })
}

async function runLane(steps, variables) {
  // oxlint-disable-next-line no-await-in-loop -- one after the other is what a lane is
  for (const step of steps) await runStep(step, variables)
}

await runStep(['npm', 'run', '--silent', 'build'])
const queue = lanes.values()
await Promise.all([1, 2].map(() => runLane(queue, { STATEWRIGHT_BUILT: 'yes' })))
// Whole, where a user's `npm test` takes a sample.
await runStep(['npm', 'test', '--', '--ci', '--json', `--outputFile=${report}`], { STATEWRIGHT_TESTS: 'all' })

for (const name of failed) console.log(`FAILED: ${name}`)
const { numPassedTests, numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(report, 'utf8'))
console.log(`${numPassedTests} passed, ${Math.max(numFailedTests, numFailedTestSuites)} failed`)
process.exitCode = failed.length > 0 ? 1 : 0
