// Checks the package like a user: packs it, holds its sizes at their goals, installs it into an empty folder without and with
// optional packages, and runs the README's first program unchanged without a key, with a custom address, and with a key. Also turns
// a command-line session into a test.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  checkConformancePackage,
  checkInstall,
  checkMachineAlone,
  checkOptionalPackages,
  checkTarball,
} from './pack-goals.mjs'
import { runTutorial } from './tutorial.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'statewright-pack-'))
const npm = (args, cwd) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** Output and exit code of the program with only these variables. */
function program(variables) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('OPENAI_')))
  const child = spawn(process.execPath, ['program.mjs'], {
    cwd: folder,
    env: { ...env, ...variables },
    timeout: 30_000,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

function expect({ code, output }, how, wanted, ...words) {
  const missing = words.filter((word) => !output.includes(word))
  if (code === wanted && missing.length === 0) return
  throw new Error(
    `The README's program ${how} ended with ${code}, without ${JSON.stringify(missing)}:\n${output}`,
  )
}

try {
  // Skips the build.
  const [packed] = JSON.parse(
    npm(['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder], root),
  )
  const { filename } = packed
  checkTarball(packed)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }')
  npm(['install', '--silent', '--no-audit', '--no-fund', join(folder, filename), 'zod'], folder)
  checkInstall(folder)
  checkMachineAlone(folder)
  checkConformancePackage(folder)

  const [, first] =
    /```ts\n(import \{ createAgent[\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
  if (!first) throw new Error('README.md has no program to run')
  writeFileSync(join(folder, 'program.mjs'), first)

  expect(await program({}), 'without a key', 1, 'ConfigError', 'No API key. Set OPENAI_API_KEY')

  const { startRehearsal } = await import(
    join(folder, 'node_modules/statewright/dist/src/rehearsal/index.js')
  )
  const rehearsal = await startRehearsal({
    turns: [
      { toolCalls: [{ name: 'add', arguments: { a: 19, b: 23 } }] },
      { text: '19 + 23 is 42.', expect: { toolResultsInclude: ['42'] } },
    ],
    onExhausted: 'loop',
  })
  const OPENAI_BASE_URL = rehearsal.url
  const ending = ['19 + 23 is 42.', 'COMPLETED (end_turn), ', ' tokens']
  expect(await program({ OPENAI_BASE_URL }), 'with a local server', 0, ...ending)
  expect(await program({ OPENAI_BASE_URL, OPENAI_API_KEY: 'key' }), 'with a key', 0, ...ending)
  const keys = rehearsal.requests.map(({ headers }) => headers.authorization)
  if (!keys.includes('Bearer key')) throw new Error(`The key did not arrive: ${keys.join()}`)
  await rehearsal.close()

  // A failed run reports how it ended.
  const locked = await startRehearsal({ turns: [{ status: 401 }] })
  expect(
    await program({ OPENAI_BASE_URL: locked.url }),
    'with a wrong key',
    0,
    'ERROR (provider_error)',
    'API key',
  )
  await locked.close()

  const talker = await startRehearsal({ turns: [{ text: 'Hello.' }], onExhausted: 'loop' })
  await checkOptionalPackages(folder, talker.url)
  await talker.close()

  // Packages that an app also uses are shared, with the same classes.
  writeFileSync(
    join(folder, 'shared.mjs'),
    `import { Observable } from 'rxjs'
import { createAgent, openaiChat } from 'statewright'
const run = createAgent({ model: openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9/v1' }) }).run('Hi.')
run.cancel()
console.log([run.events$, run.text$, run.state$].every((stream) => stream instanceof Observable))
`,
  )
  const shared = execFileSync(process.execPath, ['shared.mjs'], { cwd: folder, encoding: 'utf8' })
  if (shared !== 'true\n') throw new Error("A run's observables are not those of the app's rxjs.")

  // One command turns a session into a test, which passes, and fails after a change of its prompt.
  const command = (...args) =>
    execFileSync(join(folder, 'node_modules/.bin/statewright'), [...args, '--store', 'file:kept'], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  command('run', '--rehearsal', '--session', 'demo')
  command('sessions', 'export', 'demo', '--as', 'test', '--runner', 'node')
  const play = () =>
    spawnSync(process.execPath, ['--test', 'demo.test.mjs'], { cwd: folder, encoding: 'utf8' })
  const passed = play()
  if (passed.status !== 0) throw new Error(`A session does not play as a test:\n${passed.stdout}`)
  const test = join(folder, 'demo.test.mjs')
  writeFileSync(
    test,
    readFileSync(test, 'utf8').replace("instructions: ''", "instructions: 'You are a pirate.'"),
  )
  const failed = play()
  if (failed.status === 0 || !failed.stdout.includes('The prompt has changed'))
    throw new Error(`A session plays although its prompt has changed:\n${failed.stdout}`)

  await runTutorial(join(folder, filename))

  const version = execFileSync(join(folder, 'node_modules/.bin/statewright'), ['--version'], {
    encoding: 'utf8',
  })
  console.log(`packed and installed; the README's program and the tutorial ran (${version.trim()})`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
