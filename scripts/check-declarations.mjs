// Compiles the packed package's declarations like a user, in an empty composite project that emits declarations, with TypeScript 5.9
// and 7.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'statewright-declarations-'))
const npm = (args, cwd) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** Optional packages with types in our declarations. */
const peers = ['@opentelemetry/api', '@types/pg', 'pg']

/** A module of an app. */
const app = `
import {
  agentMachine, createAgent, createSession, defineAgents, defineGuard, defineShield, defineTool, defineToolGroup, withFallbacks,
  memoryStore, openaiChat, piiShield, presets, resolveConfig,
} from 'statewright'
import { createActor } from 'xstate'
import { z } from 'zod'

export const model = openaiChat({ model: 'gpt-5-mini', apiKey: 'k' })
export const either = withFallbacks([model, openaiChat({ model: 'gpt-5', apiKey: 'k' })])
const sum = z.object({ a: z.number(), b: z.number() })
export const add = defineTool({ name: 'add', description: 'Adds.', input: sum, execute: ({ a, b }) => a + b })
export const open = defineTool({ name: 'open', description: 'Opens.', input: z.object({ url: z.string() }), client: true })
export const mail = defineTool({
  name: 'mail',
  description: 'Mails.',
  input: z.object({ to: z.string() }),
  needsApproval: true,
  execute: ({ to }, { context }: { context: { user: string } }) => to + context.user,
})
export const group = defineToolGroup({ name: 'numbers', args: z.object({ from: z.number() }), tools: () => [add] })
export const guard = defineGuard({ name: 'quiet', observe: (state) => state, verdict: () => ({ action: 'ok' }) })
export const shield = defineShield({ name: 'open', check: () => ({ action: 'allow' }) })
export const pii = piiShield()
export const store = memoryStore()
export const plain = createAgent({ model })
export const agent = createAgent({ model, tools: [add, open], store, output: z.object({ total: z.number() }) })
export const mailer = createAgent({ model, tools: [mail], shields: { input: [pii] }, guards: [guard] })
export const research = agent.asTool({ name: 'research', description: 'Looks things up.' })
export const topic = agent.asTool({ name: 'topic', description: 'Looks up.', input: z.object({ topic: z.string() }) })
export const lead = createAgent({ model, tools: [research, topic, add] })
export const agents = defineAgents({ agent, lead })
export const machine = agent.machine
export const leadMachine = lead.machine
export const bare = agentMachine
export const actor = createActor(machine, { input: 'Go.' })
export const restored = createActor(machine, { snapshot: actor.getPersistedSnapshot() })
export const input = agent.createInput('Go.')
export const session = createSession()
export const preset = presets.aar
export const config = resolveConfig({})
export const start = () => lead.run('Go.')
export const result = async () => start().result
export const replayed = () => agent.replay('s')
`

/** Return types can appear in declarations. */
function returned(entry, names, at) {
  const lines = names.map((name, i) => `export const r${at}_${i} = returned(m${at}.${name})`)
  return [`import * as m${at} from '${entry}'`, ...lines].join('\n')
}

try {
  const [{ filename }] = JSON.parse(
    npm(['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', folder], root),
  )
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }')
  const versions = ['5.9', '7.0']
  const wanted = versions.map((version) => `typescript-${version}@npm:typescript@~${version}`)
  npm(
    [
      'install',
      '--silent',
      '--no-audit',
      '--no-fund',
      join(folder, filename),
      'zod',
      '@types/node@20',
      ...peers,
      ...wanted,
    ],
    folder,
  )

  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.entries(exports).flatMap(([path, { types } = {}]) =>
    types === undefined
      ? []
      : [{ name: `statewright${path.slice(1)}`, file: join(root, exports[path].default) }],
  )
  const parts = []
  for (const [at, { name, file }] of entries.entries()) {
    const all = Object.entries(await import(file))
    const functions = all.filter(([, value]) => typeof value === 'function' && !/^class\b/.test(`${value}`))
    parts.push(
      returned(
        name,
        functions.map(([key]) => key),
        at,
      ),
    )
  }
  mkdirSync(join(folder, 'app'))
  writeFileSync(join(folder, 'app/app.ts'), app)
  writeFileSync(
    join(folder, 'app/entries.ts'),
    `declare function returned<T>(of: (...args: never[]) => T): T\n${parts.join('\n')}\n`,
  )
  const compilerOptions = {
    target: 'ES2022',
    lib: ['ES2022', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    types: ['node'],
    strict: true,
    composite: true,
    declaration: true,
    rootDir: 'app',
    outDir: 'out',
    skipLibCheck: false,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['app'] }))

  for (const version of versions) {
    rmSync(join(folder, 'out'), { recursive: true, force: true })
    const bin = join(folder, `node_modules/typescript-${version}/bin/tsc`)
    const args = [bin, '-p', '.', '--pretty', 'false', '--tsBuildInfoFile', `built-${version}`]
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    if (status !== 0)
      throw new Error(`A project on the package does not compile with TypeScript ${version}:\n${stdout}`)
  }
  console.log(
    `a composite project on ${entries.length} entries compiles with TypeScript ${versions.join(' and ')}`,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
