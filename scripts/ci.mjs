// Everything that main must pass, after `npm ci`: npm run ci [-- STEP …]. Two steps run at a time, one that computes and one that waits.
// After the tests, which use all cores, a second step that waits joins them.
// A step prints when it ends, and a failure does not stop the other steps. The end of the output repeats the last lines of
// the failed steps and names them.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const report = join(mkdtempSync(join(tmpdir(), 'statewright-ci-')), 'tests.json')
process.env.STATEWRIGHT_TESTS = 'all'
/** CPU-bound steps, longest first. Steps that use one core precede those that use more. */
const busy = [
  'test',
  'pairs',
  'taint',
  'graph',
  'growth',
  'interpreter',
  'principals',
  'simulation',
  'mutation',
  'generated',
  'chat',
  'lint',
  'check',
  'counts',
  'guards',
  'api',
  'format',
  'pictures',
]
/** Steps that mostly wait for processes, pages, installations and clocks, longest first. */
const waiting = [
  'browser',
  'crash',
  'site',
  'hosts',
  'starters',
  'mcp',
  'chaos',
  'conformance',
  'postgres',
  'ai-sdk',
  'latency',
  'paths',
  'runtimes',
  'pack',
  'declarations',
  'package',
  'pages',
]
const commands = {
  test: `npm test -- --ci --json --outputFile=${report}`,
  lint: 'npm run -s lint',
  check: 'npm run -s check',
  build: 'npm run -s build -- --check',
  paths: 'node dist/src/cli/main.js paths',
}
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => ![...busy, ...waiting].includes(name))
if (unknown.length > 0) {
  console.error(`Unknown steps: ${unknown.join(', ')}. The steps are: ${[...busy, ...waiting].join(', ')}.`)
  process.exit(2)
}
const select = (names) => names.filter((name) => wanted.length === 0 || wanted.includes(name))

/** The failed steps and the last lines of their output. */
const failed = new Map()
/** Appends the CPU time of a step to its output. */
const timed = `TIMEFORMAT='-- %0R s, CPU %0U + %0S s'; time bash -c "$0"`

function runStep(name) {
  console.log(`.. ${name}`)
  return new Promise((resolve) => {
    const output = []
    const command = commands[name] ?? `node scripts/tasks.mjs suite ${name}`
    const child = spawn('bash', ['-c', timed, command], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data))
    child.once('error', (error) => output.push(Buffer.from(`${error.message}\n`)))
    child.once('close', (code) => {
      const text = Buffer.concat(output).toString()
      if (code !== 0) failed.set(name, text.split('\n').slice(-60).join('\n'))
      process.stdout.write(`\n== ${name}\n${text}`)
      resolve()
    })
  })
}

/** Runs its own steps, then the steps that the other lanes have not started. */
async function runLane(own, other) {
  for (let step = own.shift() ?? other.shift(); step; step = own.shift() ?? other.shift()) await runStep(step)
}

await runStep('build')
process.env.STATEWRIGHT_BUILT = 'yes'
const [computing, waits] = [select(busy), select(waiting)]
const tested = computing[0] === 'test' ? runStep(computing.shift()) : Promise.resolve()
await Promise.all([
  tested.then(() => runLane(computing, waits)),
  tested.then(() => runLane(waits, computing)),
  runLane(waits, computing),
])

for (const [name, text] of failed) console.log(`\n== ${name}, again\n${text}`)
for (const name of failed.keys()) console.log(`FAILED: ${name}`)
if (existsSync(report)) {
  const { numPassedTests, numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(report, 'utf8'))
  console.log(`${numPassedTests} passed, ${Math.max(numFailedTests, numFailedTestSuites)} failed`)
}
process.exitCode = failed.size > 0 ? 1 : 0
