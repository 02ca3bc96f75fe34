// The goals that check-pack.mjs enforces for the packed package: its sizes, and one clear sentence for each missing dependency.
import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const goals = { packedMB: 1.5, unpackedMB: 6, files: 400, installedMB: 36, packages: 14 }

const npm = (cwd, ...args) =>
  execFileSync('npm', [...args, '--silent', '--no-audit', '--no-fund'], { cwd, encoding: 'utf8' })

function checkSizes(sizes) {
  for (const [name, size] of Object.entries(sizes)) {
    console.log(`${name}: ${Math.round(size * 100) / 100} (at most ${goals[name]})`)
    if (size > goals[name]) throw new Error(`${name} is ${size}, and the goal is ${goals[name]}.`)
  }
}

/** The sizes of `npm pack --json`. */
export function checkTarball({ size, unpackedSize, entryCount }) {
  checkSizes({ packedMB: size / 1e6, unpackedMB: unpackedSize / 1e6, files: entryCount })
}

/** The folder after `npm install statewright zod`. */
export function checkInstall(folder) {
  const modules = join(folder, 'node_modules')
  const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'))
  const [kB] = execFileSync('du', ['-sk', modules], { encoding: 'utf8' }).split('\t')
  checkSizes({ installedMB: Number(kB) / 1000, packages: Object.keys(packages).length })
  const native = readdirSync(modules, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.node'),
  )
  if (native.length > 0) throw new Error(`The install has native code: ${native.join(', ')}`)
}

/** The other Node of the checks, or null where the registry has none. */
function installNode24(folder) {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'test/runtimes/package.json'), 'utf8'))
  const place = join(folder, 'node24')
  mkdirSync(place)
  npm(place, 'install', '--ignore-scripts', '--prefix', place, `node24@${optionalDependencies.node24}`)
  return join(place, 'node_modules/node24/bin/node')
}

const programs = {
  'stored.mjs': `import { createAgent, openaiChat } from 'statewright'
import { fileStore } from 'statewright/stores/file'
const store = fileStore({ dir: 'shared' })
const agent = createAgent({ model: openaiChat({ model: 'm', baseURL: process.argv[2] }), store })
const { state, messages } = await agent.run('Hi.', { session: 's' }).result
console.log(state, messages.length)
`,
  'fetched.mjs': `import { createAgent, openaiChat } from 'statewright'
const model = openaiChat({ model: 'm', baseURL: process.argv[2], fetch: (...args) => fetch(...args) })
const { state, error } = await createAgent({ model }).run('Hi.').result
console.log(state, error?.code, error?.message)
`,
}

/**
 * Runs the installed package without and with the optional packages, on this Node and on Node 24. Both write to the same
 * files. `url` is a model server that answers any request. Leaves the optional packages installed.
 */
export async function checkOptionalPackages(folder, url) {
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(folder, name), text)
  const here = process.execPath
  const hasSqlite = process.getBuiltinModule?.('node:sqlite') !== undefined
  const node24 = installNode24(folder)
  const nodes = node24 === null ? [here] : [here, node24]
  const cli = join(folder, 'node_modules/statewright/dist/src/cli/main.js')
  const home = { HOME: join(folder, 'home'), XDG_DATA_HOME: join(folder, 'home/data') }

  async function run(node, args, { code = 0, words = [], lines, uid, env = {} }) {
    const { status, text, errors } = await runNode(node, args, folder, env, uid)
    const missing = words.filter((word) => !text.includes(word))
    const sentences = errors.trim().split('\n').filter(Boolean)
    if (status === code && missing.length === 0 && (lines === undefined || sentences.length === lines)) return
    throw new Error(
      `${args.join(' ')} on ${node} ended with ${status}, without ${JSON.stringify(missing)}:\n${text}`,
    )
  }
  const noOpenai = ['ERROR missing_package', 'npm install openai']
  const noSqlite = ['Node 22.13', 'npm install libsql']

  for (const node of nodes) {
    await run(node, ['fetched.mjs', url], { words: noOpenai })
    await run(node, [cli, 'run', '--rehearsal', 'What is the largest expense?'], { env: home })
    if (node === here && !hasSqlite) {
      await run(node, ['stored.mjs', url], { code: 1, words: noSqlite })
      const session = ['run', '--rehearsal', '--session', 's']
      const inMemory = [...noSqlite, 'this session is stored only in memory.']
      await run(node, [cli, ...session, 'Go.'], { words: inMemory, lines: 1, env: home })
      await run(node, [cli, ...session, '--store', 'file:kept', 'Go.'], {
        code: 2,
        words: noSqlite,
        lines: 1,
      })
    }
  }
  let messages = 0
  const count = () => [`COMPLETED ${(messages += 2)}`]
  if (node24) await run(node24, ['stored.mjs', url], { words: count() })
  npm(folder, 'install', 'libsql', 'openai')
  for (const node of [here, ...nodes]) await run(node, ['stored.mjs', url], { words: count() })
  for (const node of nodes) await run(node, ['fetched.mjs', url], { words: ['COMPLETED'] })

  // Permissions do not restrict root.
  const uid = process.getuid?.() === 0 ? 65_534 : undefined
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'closed'))
  chmodSync(join(folder, 'closed'), 0o555)
  for (const node of nodes) {
    const args = [cli, 'run', '--rehearsal', '--store', 'file:closed/store', 'Go.']
    await run(node, args, { code: 2, words: ['closed'], lines: 1, uid })
  }
  console.log(
    `without and with libsql and openai, on ${nodes.length} versions of Node: each says what is missing`,
  )
}

function runNode(node, args, cwd, variables, uid) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(OPENAI|STATEWRIGHT)_/.test(name)),
  )
  const child = spawn(node, args, { cwd, env: { ...env, ...variables }, timeout: 60_000, uid })
  child.stdin.end()
  let [text, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (data) => (text += data))
  child.stderr.setEncoding('utf8').on('data', (data) => {
    text += data
    errors += data
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => resolve({ status, text, errors }))
  })
}

/** `statewright/machine` with xstate and nothing else, outside the folder with the other packages. */
export function checkMachineAlone(folder) {
  const place = mkdtempSync(`${folder}-machine-`)
  try {
    for (const name of ['statewright', 'xstate'])
      cpSync(join(folder, 'node_modules', name), join(place, 'node_modules', name), { recursive: true })
    writeFileSync(
      join(place, 'alone.mjs'),
      `import { createActor } from 'xstate'
import { agentMachine } from 'statewright/machine'
console.log(typeof createActor, agentMachine.id)
`,
    )
    const text = execFileSync(process.execPath, ['alone.mjs'], { cwd: place, encoding: 'utf8' })
    if (text !== 'function agent\n') throw new Error(`statewright/machine with xstate alone prints ${text}`)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** `npx agent-loop-conformance` from its packed tarball, with its own template. */
export function checkConformancePackage(folder) {
  const place = join(folder, 'conformance')
  mkdirSync(place)
  const from = join(root, 'packages/agent-loop-conformance')
  const [{ filename }] = JSON.parse(npm(from, 'pack', '--json', '--pack-destination', place))
  writeFileSync(join(place, 'package.json'), '{ "private": true }')
  npm(place, 'install', join(place, filename))
  const npx = (...args) =>
    execFileSync('npx', ['agent-loop-conformance', ...args], { cwd: place, encoding: 'utf8' })
  writeFileSync(join(place, 'x.mjs'), npx('--template'))
  const text = npx('--adapter', './x.mjs', '--case', 'wire/comments', '--no-controls')
  if (!text.includes('1 passed, 0 failed')) throw new Error(`The packed conformance suite prints:\n${text}`)
}
