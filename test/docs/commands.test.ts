import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jest } from '@jest/globals'
import { splitShellWords } from '../../src/core/format/shell-words.js'
import * as core from '../../src/index.js'
import { type Rehearsal, type Scenario, startRehearsal } from '../../src/rehearsal/index.js'
import { cli, removeFolders } from '../cli/support.js'
import { root, snippets } from './snippets.js'
import { provideEntries } from '../support/entries.js'
import { listScripts } from './npm-scripts.js'

jest.setTimeout(120_000)
provideEntries({ statewright: core })

const filesystem = `${process.execPath} ${root}node_modules/@modelcontextprotocol/server-filesystem/dist/index.js`

/** The setup of a command block. Keyed by the start of a line, with nonzero exit codes and replacements. */
interface Script {
  turns?: Scenario['turns']
  /** Commands to run first, as the reader's work between the blocks. */
  before?: Record<string, string>
  codes?: Record<string, number>
  instead?: Record<string, string>
  /** Lines that do not run, with the reason. */
  because?: Record<string, string>
}

const says = (text: string) => ({ text })
const work = { toolCalls: [{ name: 'save', arguments: {} }] }

const scripts: Record<string, Script> = {
  'README.md › Statewright': { because: { 'npm install': 'npm run suite -- pack' } },
  'README.md › Statewright (3)': { because: { 'npm ci': 'scripts of package.json' } },
  'docs/a-run-as-a-test.md › On the command line': {
    because: { 'npx statewright sessions export demo --as test --agent': 'test/cli/export-test.test.ts' },
  },
  'docs/command-line.md › Command line': {
    turns: [
      says('Nothing.'),
      says('Files.'),
      work,
      says('Saved.'),
      says('With it.'),
      says('Without it, then.'),
    ],
    before: {
      'npx statewright sessions list': "statewright run --session work --tools ./tools.mjs 'Save it.'",
    },
    instead: {
      'npx -y @modelcontextprotocol/server-filesystem': filesystem,
      'call_1@9f3c…': '$PRINTED',
      '--at 12': '--at 2',
    },
    codes: { "statewright run --session work --tools ./tools.mjs 'Save it.'": 4 },
  },
  'docs/compare-machines.md › Compare two versions of a machine (3)': {
    instead: {
      'examples/sign-off.machine.mjs': './machine.mjs',
      'examples/hasty-sign-off.machine.mjs': './machine.mjs',
    },
    because: { 'npx statewright diff before.machine.ts': 'test/cli/diff.test.ts' },
  },
  'docs/conformance.md › Conformance of agent loops': {
    because: { 'npx agent-loop-conformance': 'test/conformance/suite.test.ts' },
  },
  'docs/evaluations.md › Evaluations (2)': {
    because: { 'npx statewright eval': 'test/examples/evaluation.test.ts' },
  },
  'docs/evaluations.md › Compare': { because: { 'npx statewright eval': 'test/cli/eval.test.ts' } },
  'docs/evaluations.md › Replay production': { because: { 'npx statewright eval': 'test/cli/eval.test.ts' } },
  'docs/express.md › Express': {},
  'docs/fleet.md › Batches': {
    because: { 'npx statewright batch': 'test/examples/batch.test.ts' },
  },
  'docs/fleet.md › Send to many sessions (2)': {},
  'docs/guarantees.md › Guarantees': {},
  'docs/guardrails-measured.md › Guardrails, measured': {},
  'docs/hono.md › Hono': {},
  'docs/deferred-tools.md › The search': {
    because: { 'npm install': 'the packages of the development dependencies' },
  },
  'docs/mcp.md › MCP': {},
  'docs/mcp.md › MCP (3)': {
    turns: [says('Files.'), says('More files.')],
    instead: {
      'npx -y @modelcontextprotocol/server-filesystem': filesystem,
      ' --mcp https://example.com/mcp': '',
      'API_KEY=$API_KEY npx -y some-server': `API_KEY=secret ${filesystem} .`,
    },
  },
  'docs/mcp.md › Serve agents': {},
  'docs/mcp.md › Serve agents (3)': {
    because: { 'npx statewright mcp': 'it serves until its client leaves: test/mcp/server/stdio.test.ts' },
  },
  'docs/mcp.md › Serve agents (4)': {
    because: { 'npx @modelcontextprotocol/inspector': 'a package of its own; the transcript is below' },
  },
  'docs/memory.md › Memory and attachments': {},
  'docs/node-http.md › node:http': {},
  'docs/performance.md › Performance': {},
  'docs/properties.md › On the command line': {
    because: { 'npx statewright properties': 'test/cli/properties.test.ts' },
  },
  'docs/retrofit.md › 1. Measure your loop': {
    because: { 'npx agent-loop-conformance': 'test/conformance/suite.test.ts' },
  },
  'docs/scale.md › Deploy a new version': {
    because: { 'npx statewright sessions check': 'it needs a Postgres: test/cli/sessions-check.test.ts' },
  },
  'docs/stately.md › Stately': {
    because: { 'npx statewright stately': 'it serves a page until a person ends it' },
  },
  'docs/stately.md › Watch a run': {
    because: { 'npx statewright run --inspect': 'it waits until a person opens the page' },
  },
  'docs/studio.md › Studio': {
    because: {
      'npx statewright studio': 'it stays open: test/cli/studio.test.ts',
      'npx statewright run': 'it stays open: test/cli/studio.test.ts',
      'npx statewright sessions export': 'test/cli/studio.test.ts',
    },
  },
  'docs/telemetry.md › Export to a collector': {
    because: {
      OTEL_SERVICE_NAME: 'it needs a collector',
    },
  },
  'docs/telemetry.md › Langfuse': { because: { OTEL_: 'variables for the program above' } },
  'docs/telemetry.md › Phoenix': { because: { OTEL_: 'variables for the program above' } },
  'docs/telemetry.md › Grafana': { because: { OTEL_: 'variables for the program above' } },
  'docs/test-your-own-agent.md › 2. Generate the paths': {
    instead: { 'examples/sign-off.machine.mjs': './machine.mjs', '--emit test/paths': '--emit paths' },
  },
  'docs/versioning.md › Versioning': {
    because: { 'npx statewright sessions check': 'it needs a Postgres: test/cli/sessions-check.test.ts' },
  },
  'examples/chat-tenants/README.md › A chat for several tenants': {},
  'examples/coding-agent/README.md › A coding agent for the terminal': {},
  'visualizations/README.md › Your own machine': {},
}

const blocks = snippets.filter(({ lang }) => lang === 'sh')
const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Record<
  'dependencies' | 'devDependencies' | 'peerDependencies',
  Record<string, string>
>
const packages = ['statewright', ...Object.values(manifest).flatMap((value) => Object.keys(value))]

const folder = join(root, 'test/docs', `.commands-${process.pid}`)
let rehearsal: Rehearsal

beforeEach(async () => {
  await mkdir(join(folder, 'config/samples'), { recursive: true })
  await cp(join(root, 'examples/sign-off.machine.mjs'), join(folder, 'machine.mjs'))
  await writeFile(
    join(folder, 'tools.mjs'),
    `import { defineTool } from 'statewright'
const input = { type: 'object', properties: {} }
export default [
  defineTool({ name: 'save', description: 'Saves.', input, needsApproval: true, execute: () => 'saved' }),
]`,
  )
})

afterEach(async () => {
  await rehearsal.close()
  await removeFolders()
  await rm(folder, { recursive: true, force: true })
})

test('every block of commands has a script, and every script a block', () => {
  expect(Object.keys(scripts)).toEqual(blocks.map(({ id }) => id))
  rehearsal = { close: () => Promise.resolve() } as Rehearsal
})

test.each(blocks)('$id works as described', async ({ id, code }) => {
  const {
    turns = [says('Nobody was to ask.')],
    before = {},
    codes = {},
    instead = {},
    because = {},
  } = scripts[id] ?? {}
  rehearsal = await startRehearsal({ turns })
  await takeConfiguration()
  const dataFolder = join(folder, 'data')
  let printed = ''

  const run = async (line: string): Promise<string> => {
    const [command = '', target] = line.split(/ > (?=\S+$)/)
    const words = splitShellWords(command)?.slice(1) ?? []
    const env = { OPENAI_BASE_URL: rehearsal.url, OPENAI_API_KEY: 'rehearsal', OPENAI_MODEL: 'm' }
    const { code: exit, out, err } = await cli(words, { cwd: folder, dataFolder, env })
    expect({ line, exit, err: exit === (codes[line] ?? 0) ? '' : err }).toEqual({
      line,
      exit: codes[line] ?? 0,
      err: '',
    })
    printed = /--approve (?:'([^']+)'|(\S+))/.exec(`${out}${err}`)?.slice(1).find(Boolean) ?? printed
    if (target !== undefined) await writeFile(join(folder, target), out)
    return out.trim()
  }

  for (const written of code.split('\n').filter(Boolean)) {
    const line = written.replace(/\s+#.*$/, '')
    const [, words = ''] = /^npm (?:install|ci|i) ?(.*)$/.exec(line) ?? []
    const earlier = Object.entries(before).find(([beginning]) => line.startsWith(beginning))?.[1]
    if (earlier !== undefined) await run(earlier)
    if (line.startsWith('npm ci && npm ')) {
      expect(await listScripts()).toContain(line.replace('npm ci && npm ', ''))
    } else if (line.startsWith('npm run ')) {
      const [, name = ''] = /^npm run ([\w:-]+(?: -- \w[\w-]*)?)/.exec(line) ?? []
      expect(await listScripts()).toContain(name)
    } else if (line.startsWith('npm ')) {
      expect(packages).toEqual(expect.arrayContaining(words.split(' ')))
    } else if (!Object.keys(because).some((beginning) => line.startsWith(beginning))) {
      let played = line.replace(/^npx statewright/, 'statewright')
      for (const [from, to] of Object.entries(instead)) played = played.replaceAll(from, () => to)
      const [whole, inner] = /"\$\((?:npx )?(statewright [^)]*)\)"/.exec(played) ?? []
      if (whole !== undefined && inner !== undefined) played = played.replace(whole, await run(inner))
      await run(played.replace('$PRINTED', printed))
    }
  }
  expect(rehearsal.remaining).toBe(scripts[id]?.turns ? 0 : 1)
})

/** The package's samples, with a rehearsal as the provider. */
async function takeConfiguration(): Promise<void> {
  const file = 'config/samples/openai.json'
  const sample = JSON.parse(readFileSync(root + file, 'utf8')) as { model: object }
  const model = { ...sample.model, baseURL: rehearsal.url }
  await writeFile(join(folder, file), JSON.stringify({ ...sample, model }))
}
