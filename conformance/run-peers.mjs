// The controls first, then each library in each column: a process each, which is started anew when a library ends it.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { install, nodeFor, versionOf } from '../bench/peers/install.mjs'
import { facts } from './facts.mjs'

const columns = ['defaults', 'documented']
const width = 8
const worker = fileURLToPath(new URL('./worker.mjs', import.meta.url))
const isOurs = (name) => name === 'statewright'
const say = (text) => process.stderr.write(`${text}\n`)
// Libraries that report their use are told not to.
const env = {
  ...process.env,
  MASTRA_TELEMETRY_DISABLED: '1',
  LANGSMITH_TRACING: 'false',
  OPENAI_API_KEY: 'none',
}

/** One process: what it told, the cases that it had begun, and its last words. */
async function runProcess(given, execPath, results, loose) {
  const begun = []
  const printed = []
  const child = fork(worker, [JSON.stringify(given)], {
    execPath,
    env,
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      printed.push(String(data))
      if (printed.length > 50) printed.shift()
    })
  }
  child.on('message', ({ begins, id, result, evidence, loose: error }) => {
    if (begins) begun.push(begins)
    if (id) results.set(id, { result, evidence })
    if (error) loose.add(error)
  })
  await new Promise((resolve) => child.once('close', resolve))
  return {
    begun: begun.filter((id) => !results.has(id)),
    printed: printed.join('').trim().slice(-600),
    isAlive: begun.length > 0,
  }
}

/** Results by case id. */
async function runColumn({ name, column, cases, seed, execPath, repeats = true }) {
  const results = new Map()
  const loose = new Set()
  const given = { name, column, seed, repeats, ids: cases.map(({ id }) => id), width }
  while (given.ids.length > 0) {
    // oxlint-disable-next-line no-await-in-loop -- one process after the other
    const { begun, printed, isAlive } = await runProcess(given, execPath, results, loose)
    if (!isAlive) return { error: printed || 'the process ended before the first case' }
    // Alone, a case that ends the process is the one that was at work.
    if (given.width === 1 && begun[0])
      results.set(begun[0], { result: 'fail', evidence: `the process died: ${printed}` })
    given.width = 1
    given.ids = given.ids.filter((id) => !results.has(id))
  }
  return { results, loose: [...loose] }
}

/** The cases that do not tell the right loop from the wrong one. */
export async function runControls({ cases, seed }) {
  const given = { column: 'defaults', cases, seed, execPath: process.execPath, repeats: false }
  const [right, wrong] = await Promise.all(['right', 'wrong'].map((name) => runColumn({ name, ...given })))
  if (right.error || wrong.error) throw new Error(`The controls do not run: ${right.error ?? wrong.error}`)
  return cases.flatMap(({ id, mistake }) => {
    const [good, bad] = [right.results.get(id), wrong.results.get(id)]
    const why = []
    if (good.result !== 'pass') why.push(`the right loop: ${good.result}, ${good.evidence}`)
    if (bad.result !== 'fail') why.push(`the wrong loop (${mistake}): ${bad.result}, ${bad.evidence}`)
    return why.length > 0 ? [{ case: id, why: why.join('; ') }] : []
  })
}

const judge = (told, isExpected) =>
  told.result === 'fail' && isExpected ? { ...told, result: 'expected_fail' } : told

async function runPeer({ name, cases, seed, node, expected, report }) {
  const { title, packages, ...rest } = facts[name]
  const versions = Object.fromEntries(packages.map((one) => [one, versionOf(one) ?? null]))
  report.peers.push({ name, title, versions, ...rest })
  const execPath = isOurs(name) ? process.execPath : node.path
  const ends = await Promise.all(columns.map((column) => runColumn({ name, column, cases, seed, execPath })))
  for (const [at, { results, error, loose }] of ends.entries()) {
    const column = columns[at]
    if (error) {
      report.missing.push({ peer: name, column, why: error })
      continue
    }
    for (const text of loose) report.loose.push({ peer: name, column, error: text })
    for (const { id } of cases) {
      const told = judge(results.get(id), expected[name]?.[column]?.[id] !== undefined)
      report.results.push({ peer: name, version: versions[packages[0]], column, case: id, ...told, seed })
    }
  }
}

export async function runPeers({ names, cases, seed, node: chosen, expected }) {
  if (!names.every(isOurs)) install(say)
  const node = nodeFor(chosen)
  if (node.error) throw new Error(node.error)
  const report = {
    date: new Date().toISOString().slice(0, 10),
    seed,
    node: node.version,
    command: `npm run conformance -- --peer ${names.join(',')} --seed ${seed}`,
    peers: [],
    missing: [],
    loose: [],
    controls: await runControls({ cases, seed }),
    results: [],
  }
  for (const name of names) {
    say(name)
    // oxlint-disable-next-line no-await-in-loop -- one after the other, so that none has less of the machine
    await runPeer({ name, cases, seed, node, expected, report })
  }
  return report
}
