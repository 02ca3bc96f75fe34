// Runs the conformance command for each library, and collects the reports.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install, nodeFor, versionOf } from '../bench/peers/install.mjs'
import { facts } from './facts.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const command = here('../packages/agent-loop-conformance/cli.mjs')
const isOurs = (name) => name === 'statewright'
const log = (text) => process.stderr.write(`${text}\n`)
const env = {
  ...process.env,
  NODE_OPTIONS: `--import ${new URL('resolve-peers.mjs', import.meta.url).href}`,
  // Turns off the usage reports of the libraries.
  MASTRA_TELEMETRY_DISABLED: '1',
  LANGSMITH_TRACING: 'false',
  OPENAI_API_KEY: 'none',
}

/** The JSON report of the command, or `{ error }`. */
async function runCommand(execPath, args) {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
  const file = join(folder, 'report.json')
  let printed = ''
  try {
    const child = spawn(execPath, [command, ...args, '--json', file], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr.on('data', (data) => {
      printed = (printed + data).slice(-600)
    })
    const code = await new Promise((resolve) => child.once('close', resolve))
    return code === 0 || code === 1 ? JSON.parse(readFileSync(file, 'utf8')) : { error: printed.trim() }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const judge = (result, isExpected) =>
  result.result === 'fail' && isExpected ? { ...result, result: 'expected_fail' } : result

export async function runPeers({ names, cases, seed, node: chosen, expected }) {
  if (!names.every(isOurs)) install(log)
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
    controls: [],
    results: [],
  }
  const ids = new Set(cases.map(({ id }) => id))
  const selection = cases.flatMap(({ id }) => ['--case', id])
  for (const [index, peer] of names.entries()) {
    log(peer)
    const { title, packages, ...rest } = facts[peer]
    const versions = Object.fromEntries(packages.map((name) => [name, versionOf(name) ?? null]))
    report.peers.push({ name: peer, title, versions, ...rest })
    const args = ['--adapter', here(`adapters/${peer}.mjs`), '--seed', String(seed), ...selection]
    // The controls do not depend on the library.
    if (index > 0) args.push('--no-controls')
    const {
      error: why,
      controls = [],
      variants = [],
    } = await runCommand(isOurs(peer) ? process.execPath : node.path, args)
    report.controls.push(...controls)
    if (why) report.missing.push({ peer, variant: 'all', why })
    for (const { variant, error, loose = [], results = [] } of variants) {
      if (error) report.missing.push({ peer, variant, why: error })
      for (const text of loose) report.loose.push({ peer, variant, error: text })
      for (const result of results.filter((one) => ids.has(one.case))) {
        const isExpected = expected[peer]?.[variant]?.[result.case] !== undefined
        report.results.push({
          peer,
          version: versions[packages[0]],
          variant,
          seed,
          ...judge(result, isExpected),
        })
      }
    }
  }
  return report
}
