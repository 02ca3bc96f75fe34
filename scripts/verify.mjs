// Checks a change in under a minute on two cores: types, lint, format, and related tests. The change is everything
// since the branch left main, including uncommitted files. Usage: npm run verify [-- --since REV]
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Suites that play generated paths or start programs. `.ci/run` and `npm test` run them. */
const leftOut = [
  'pairs',
  'taint',
  'graph',
  'paths',
  'chaos',
  'browser',
  'postgres',
  'crash',
  'docs',
  'examples',
]
/** As many files as two cores run in half a minute. */
const mostFiles = 40
/** Lines of output to print for a failed step. */
const mostLines = 80

if (process.argv.includes('--help')) {
  console.log(
    'npm run verify [-- --since REV]\nTypes, lint, format, and the tests that the change since REV touches.',
  )
  console.log('REV: default the commit at which this branch left main, or HEAD on main.')
  process.exit(0)
}

const git = (...args) => {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.split('\n').filter(Boolean) : []
}

function readBase() {
  const at = process.argv.indexOf('--since')
  if (at === -1) return git('merge-base', 'HEAD', 'main')[0] ?? 'HEAD'
  return git('rev-parse', '--verify', `${process.argv[at + 1]}^{commit}`)[0]
}

/** Runs a step, and prints its output if it fails. */
function runStep(name, command, args) {
  const begun = Date.now()
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: { ...process.env, NODE_NO_WARNINGS: '1' } })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
    child.once('error', (error) => resolve({ name, passed: false, output: error.message, begun }))
    child.once('close', (code) => resolve({ name, passed: code === 0, output, begun }))
  }).then((step) => {
    const seconds = ((Date.now() - step.begun) / 1000).toFixed(0)
    console.log(`${step.passed ? 'passed' : 'FAILED'}  ${name}  (${seconds} s)`)
    if (!step.passed) console.log(step.output.trim().split('\n').slice(-mostLines).join('\n'))
    return step.passed
  })
}

const bin = (name) => join(root, 'node_modules/.bin', name)
const jest = join(root, 'node_modules/jest/bin/jest.js')
const jestFlags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', jest]
const base = readBase()
if (base === undefined) {
  console.error('--since takes a commit: a branch, a tag or a hash.')
  process.exit(2)
}
const changed = [
  ...new Set([...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')]),
].filter((file) => /\.tsx?$/.test(file) && existsSync(join(root, file)))

function findTests() {
  if (changed.length === 0) return []
  const ignored = leftOut.flatMap((suite) => ['--testPathIgnorePatterns', `/test/${suite}/`])
  const { stdout } = spawnSync(
    process.execPath,
    [...jestFlags, '--listTests', ...ignored, '--findRelatedTests', ...changed],
    { cwd: root, encoding: 'utf8' },
  )
  return stdout.split('\n').filter((line) => line.endsWith('.test.ts'))
}

/** Changed tests, and tests named after a changed file, come first. */
function orderTests(tests) {
  const names = new Set(changed.map((file) => basename(file).replace(/(\.test)?\.tsx?$/, '')))
  const isNear = (test) => names.has(basename(test, '.test.ts'))
  return [...tests.filter(isNear), ...tests.filter((test) => !isNear(test))]
}

const types = runStep('types', bin('tsc'), ['--noEmit'])
const format = runStep('format', bin('biome'), ['format', '.'])
const checks = [
  await types,
  await format,
  await runStep('lint', bin('oxlint'), ['--type-aware', '--deny-warnings']),
]
const tests = orderTests(findTests())
const chosen = tests.slice(0, mostFiles)
if (chosen.length > 0) {
  const ran = await runStep(`${chosen.length} test files`, process.execPath, [
    ...jestFlags,
    '--silent',
    ...chosen,
  ])
  checks.push(ran)
}
if (tests.length > chosen.length)
  console.log(`${tests.length - chosen.length} more test files touch this change: npm test`)
console.log(`Left out: ${leftOut.join(', ')} (npm test, .ci/run)`)
process.exit(checks.every(Boolean) ? 0 : 1)
