// Runs the packed package in each runtime: npm run suite -- runtimes [--write]. Compares the table of docs/runtimes.md, or writes
// it. Also runs the tests of stores on Node 24.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { freePort } from '../../scripts/own-postgres.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const root = here('../..')
const page = join(root, 'docs/runtimes.md')
const marked = /(<!-- bench:runtimes -->\n)[\s\S]*?(\n<!-- \/bench:runtimes -->)/
const installed = JSON.parse(readFileSync(here('package.json'), 'utf8')).optionalDependencies
const versionOf = (name) => installed[name].replace(/^.*@/, '')

const runtimes = [
  ...['20', '22', '24'].map((major) => ({
    name: `Node ${versionOf(`node${major}`)}`,
    program: [here(`node_modules/node${major}/bin/node`)],
  })),
  {
    name: `Bun ${versionOf('@oven/bun-linux-x64')}`,
    program: [here('node_modules/@oven/bun-linux-x64/bin/bun')],
  },
  {
    name: `Deno ${versionOf('@deno/linux-x64-glibc')}`,
    program: [
      here('node_modules/@deno/linux-x64-glibc/deno'),
      'run',
      '--allow-all',
      '--node-modules-dir=manual',
      '--no-lock',
    ],
  },
]
const workerd = {
  name: `workerd ${versionOf('@cloudflare/workerd-linux-64')}`,
  program: [here('node_modules/@cloudflare/workerd-linux-64/bin/workerd')],
}

/** The model scripts, by model name. */
const text = 'One, two, three, four, five, six.'
const scenarios = {
  call: {
    turns: [
      ({ body }) =>
        body.messages.at(-1)?.role === 'tool'
          ? { text: '19 + 23 is 42.' }
          : { toolCalls: [{ name: 'add', arguments: { a: 19, b: 23 } }] },
    ],
    onExhausted: 'loop',
  },
  stream: { turns: [{ text, chunkSize: 4, chunkDelayMs: 2 }], onExhausted: 'loop' },
  cut: { turns: [{ text, cutAfter: 2 }, { text: 'Whole.' }], onExhausted: 'loop' },
  hang: { turns: [{ text, chunkSize: 4, hang: 2 }], onExhausted: 'loop' },
  session: { turns: [{ text: 'You are Ann.' }], onExhausted: 'loop' },
  order: {
    turns: [
      ({ body }) =>
        body.messages.at(-1)?.role === 'tool'
          ? { text: 'Sent.' }
          : { toolCalls: [{ name: 'wait_for_payment' }] },
    ],
    onExhausted: 'loop',
  },
}

function install() {
  if (runtimes.concat(workerd).every(({ program: [path] }) => existsSync(path))) return true
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  return spawnSync('npm', args, { cwd: here('.'), stdio: ['ignore', 2, 2] }).status === 0
}

/** A folder with the installed package, like an app. */
function createApp() {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-runtimes-'))
  const args = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder]
  const [{ filename }] = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8' }))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }')
  for (const name of ['features.mjs', 'process.mjs', 'worker.mjs'])
    copyFileSync(here(name), join(folder, name))
  copyFileSync(join(root, 'examples/hosts/durable-object.mjs'), join(folder, 'durable-object.mjs'))
  const packages = [join(folder, filename), 'zod', 'libsql', 'openai']
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', ...packages], { cwd: folder })
  return folder
}

/** The result of each feature in a runtime that executes programs. */
function playProcess({ program: [command, ...args] }, cwd, url) {
  const files = mkdtempSync(join(cwd, 'sessions-'))
  return new Promise((resolve) => {
    const child = spawn(command, [...args, 'process.mjs', url, files], { cwd, timeout: 60_000 })
    let [output, failed] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (data) => (output += data))
    child.stderr.setEncoding('utf8').on('data', (data) => (failed += data))
    child.once('error', (error) => resolve({ start: error.message }))
    child.once('close', (code) => {
      const line = output.trim().split('\n').at(-1)
      resolve(code === 0 && line ? JSON.parse(line) : { start: `ended with ${code}: ${output}${failed}` })
    })
  })
}

/** The same in workerd. The program is one module that answers a request. */
async function playWorker({ program: [command] }, folder, url) {
  const place = join(folder, 'worker')
  mkdirSync(join(place, 'objects'), { recursive: true })
  await build({
    entryPoints: [join(folder, 'worker.mjs')],
    outfile: join(place, 'bundle.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*', 'cloudflare:*'],
    logLevel: 'silent',
  })
  const port = await freePort()
  writeFileSync(
    join(place, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "bundle.mjs", esModule = embed "bundle.mjs")],
      compatibilityDate = "2026-11-01",
      compatibilityFlags = ["nodejs_compat"],
      globalOutbound = "loopback",
      durableObjectNamespaces = [
        (className = "StoreObject", uniqueKey = "stores", enableSql = true),
        (className = "SessionObject", uniqueKey = "sessions", enableSql = true),
      ],
      durableObjectStorage = (localDisk = "objects"),
      bindings = [
        (name = "STORES", durableObjectNamespace = "StoreObject"),
        (name = "SESSIONS", durableObjectNamespace = "SessionObject"),
        (name = "MODEL", text = "rehearsal/order"),
        (name = "BASE_URL", text = "${url}"),
        (name = "API_KEY", text = "none"),
      ],
    )),
    (name = "objects", disk = (path = "${join(place, 'objects')}", writable = true)),
    (name = "loopback", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`,
  )
  const child = spawn(command, ['serve', join(place, 'config.capnp')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let failed = ''
  child.stderr.setEncoding('utf8').on('data', (data) => (failed += data))
  try {
    for (let looks = 0; looks < 100 && child.exitCode === null; looks += 1) {
      const answer = await fetch(`http://127.0.0.1:${port}/?model=${encodeURIComponent(url)}`).catch(
        () => null,
      )
      if (answer?.ok) return await answer.json()
      if (answer) return { start: `answered ${answer.status}: ${await answer.text()} ${failed}` }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return { start: failed || 'it does not answer' }
  } finally {
    child.kill('SIGKILL')
  }
}

function formatTable(played) {
  const features = [...new Set(played.flatMap(({ results }) => Object.keys(results)))]
  const cell = (result) => (result === undefined ? '–' : result === null ? 'yes' : '**no**')
  return [
    `| | ${played.map(({ name }) => name).join(' | ')} |`,
    `| --- |${' --- |'.repeat(played.length)}`,
    ...features.map(
      (feature) => `| ${feature} | ${played.map(({ results }) => cell(results[feature])).join(' | ')} |`,
    ),
  ].join('\n')
}

if (process.platform !== 'linux' || process.arch !== 'x64' || !install()) {
  console.log('The runtimes were not played: they are installed for Linux on x64, from the registry.')
  process.exit(process.platform === 'linux' && process.arch === 'x64' && process.env.CI ? 1 : 0)
}
const { startRehearsal } = await import(join(root, 'dist/src/rehearsal/index.js'))
const folder = createApp()
const played = []
try {
  for (const runtime of [...runtimes, workerd]) {
    const rehearsal = await startRehearsal({ scenarios })
    const play = runtime === workerd ? playWorker : playProcess
    const results = await play(runtime, folder, rehearsal.url)
    await rehearsal.close()
    played.push({ name: runtime.name, results })
    for (const [feature, fault] of Object.entries(results))
      if (fault !== null) console.log(`FAILED in ${runtime.name}: ${feature}: ${fault}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const table = formatTable(played)
console.log(table)
const before = readFileSync(page, 'utf8')
if (!marked.test(before)) throw new Error('docs/runtimes.md has no place for the table.')
const after = before.replace(marked, (_all, begin, end) => `${begin}${table}${end}`)
if (process.argv.includes('--write')) writeFileSync(page, after)
else if (after !== before) {
  console.log('FAILED: docs/runtimes.md has another table: npm run suite -- runtimes --write')
  process.exitCode = 1
}
// File stores use Node's own SQLite here, and libsql with `npm test` on Node 20.
const [node24] = runtimes.find(({ name }) => name.startsWith('Node 24')).program
const stores = spawnSync(node24, [join(root, 'scripts/test.mjs'), 'test/stores'], {
  cwd: root,
  encoding: 'utf8',
  env: { ...process.env, STATEWRIGHT_TESTS: 'sample' },
})
console.log(stores.stderr.split('\n').slice(-6).join('\n'))
if (stores.status !== 0) {
  console.log(`FAILED: test/stores on Node 24\n${stores.stderr}`)
  process.exitCode = 1
}
if (played.some(({ results }) => Object.values(results).some((fault) => fault !== null))) process.exitCode = 1
