import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { format } from 'node:util'
import { jest } from '@jest/globals'
import { AzureOpenAI, OpenAI } from 'openai'
import * as core from '../../src/index.js'
import * as agui from '../../src/agui/index.js'
import * as aiSdk from '../../src/ai-sdk/index.js'
import * as diagram from '../../src/diagram/index.js'
import * as durable from '../../src/durable/index.js'
import * as fleet from '../../src/fleet/index.js'
import * as machine from '../../src/machine/index.js'
import * as mcp from '../../src/mcp/index.js'
import * as mcpServing from '../../src/mcp/server/index.js'
import * as memory from '../../src/memory/index.js'
import * as skills from '../../src/skills/index.js'
import * as cedar from '../../src/cedar/index.js'
import * as dbos from '../../src/dbos/index.js'
import * as opa from '../../src/opa/index.js'
import * as otel from '../../src/otel/index.js'
import * as restate from '../../src/restate/index.js'
import * as rehearsing from '../../src/rehearsal/index.js'
import * as stores from '../../src/stores/index.js'
import * as fileStores from '../../src/stores/file/index.js'
import * as postgresStores from '../../src/stores/postgres/index.js'
import * as objectStores from '../../src/stores/durable-object/index.js'
import * as studio from '../../src/studio/index.js'
import * as testing from '../../src/testing/index.js'
import * as ui from '../../src/ui/index.js'
import * as uiClient from '../../src/ui/client/index.js'
import { examples, importsOfAll, moduleOf } from '../types/doc-examples.js'
import { root } from './snippets.js'
import { runsAll, sampledRows } from '../support/extent.js'

jest.setTimeout(60_000)

const modules = {
  statewright: core,
  'statewright/agui': agui,
  'statewright/ai-sdk': aiSdk,
  'statewright/diagram': diagram,
  'statewright/durable': durable,
  'statewright/fleet': fleet,
  'statewright/machine': machine,
  'statewright/mcp': mcp,
  'statewright/mcp/server': mcpServing,
  'statewright/memory': memory,
  'statewright/skills': skills,
  'statewright/cedar': cedar,
  'statewright/opa': opa,
  'statewright/dbos': dbos,
  'statewright/otel': otel,
  'statewright/restate': restate,
  'statewright/rehearsal': rehearsing,
  'statewright/stores': stores,
  'statewright/stores/file': fileStores,
  'statewright/stores/postgres': postgresStores,
  'statewright/stores/durable-object': objectStores,
  'statewright/studio': studio,
  'statewright/testing': testing,
  'statewright/ui': ui,
  'statewright/ui/client': uiClient,
}

/** Resources that examples open and leave to the reader to close. */
const opened: { close(): Promise<void> }[] = []

function closedLater<Given extends unknown[], Thing extends { close(): Promise<void> }>(
  open: (...args: Given) => Promise<Thing>,
) {
  return async (...args: Given): Promise<Thing> => {
    const thing = await open(...args)
    opened.push(thing)
    return thing
  }
}

const openers = {
  startRehearsal: closedLater(rehearsing.startRehearsal),
  startInspector: closedLater(studio.startInspector),
  startStudio: closedLater(studio.startStudio),
  createWaker: (...args: Parameters<typeof fleet.createWaker>) => {
    const waker = fleet.createWaker(...args)
    opened.push({ close: () => waker.stop() })
    return waker
  },
  durable: (...args: Parameters<typeof durable.durable>) => {
    const sessions = durable.durable(...args)
    const start = sessions.worker.bind(sessions)
    const worker: typeof start = (options) => {
      const started = start(options)
      opened.push({ close: () => started.drain() })
      return started
    }
    return Object.assign(sessions, { worker })
  },
}
for (const [name, module] of Object.entries(modules)) {
  const own = Object.fromEntries(Object.entries(openers).filter(([opener]) => opener in module))
  jest.unstable_mockModule(name, () => ({ ...module, ...own }), { virtual: true })
}

/** The assumed context of examples, with a scripted model, a session 'ann' in a store, and a custom machine. */
const world = `
import { createActor, createMachine, fromPromise, initialTransition, SimulatedClock, toPromise, transition } from 'xstate'
import * as z from 'zod'
const { model, store, log, shows, write, expect, readFile, writeFile, OpenAI, AzureOpenAI, createBrowserInspector } = globalThis.stage
const console = { log }
const process = { stdout: { write }, env: {}, cwd: () => '.', exitCode: 0, once: () => undefined }
const add = defineTool({ name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), execute: ({ a }) => a })
const tools = [add]
const budget = createBudget({ id: 'tenant-acme', usd: 20, per: 'day', store: memoryStore() })
const agent = createAgent({ model, tools, ...(store && { store }) })
const recording = store && (await recordSession(agent, 'ann'))
const researcher = agent
const run = agent.run('Go.')
const result = await run.result
const { usage } = result
const controller = new AbortController()
const { signal } = controller
const machine = createMachine({
  context: { signatures: 0, steps: 0 },
  initial: 'closed',
  states: { closed: { on: { OPEN: 'open' } }, open: { on: { CLOSE: 'closed' } } },
})
const alphabet = { open: { type: 'OPEN' }, close: { type: 'CLOSE' } }
const { paths } = generatePaths(machine, { alphabet })
const chart = toChart(machine)
const documents = [{ source: 'leave.md', text: 'Everyone has 30 days of vacation.' }]
const session = createSession('May')
const [text, message, token, apiVersion, error] = ['{ "turns": [{ "text": "Hello." }] }', 'And in May?', 'secret', '2025-01-01', new Error('No.')]
const later = async () => undefined
const readIn = (root) => add
const listIn = (root) => defineTool({ name: 'list', description: 'Lists.', input: z.object({}), execute: () => root })
const search = async () => [{ source: 'a.md', text: 'A.' }]
const loaded = tools
const claimMachine = createMachine({
  id: 'claim',
  context: ({ input }) => ({ amount: input?.amount ?? 0 }),
  initial: 'reviewing',
  states: {
    reviewing: { on: { APPROVE: 'paying', REJECT: 'rejected' } },
    paying: { invoke: { src: 'pay', onDone: 'paid' } },
    paid: {},
    rejected: {},
  },
})
const pay = fromPromise(async () => 'p1')
const claims = durable(claimMachine, { store: store ?? memoryStore(), actors: { pay } })
await claims.start('claim-17', { input: { amount: 900 } })
await claims.settled('claim-17')
const createHarness = () => createMachineHarness(machine)
`

/** Examples that cannot run here, with the reason. They are only compiled. Keyed by a piece of their code. */
const apart: Record<string, string> = {
  'costLimit: 2 }': 'the price of its model is known at OpenAI alone',
  'agentSpace())': 'the whole space takes half a minute; test/graph explores it',
  'objectOrThrow(await': 'its agent has an output schema; test/docs/snippets.test.ts plays one',
  "loadAttachment({ path: 'report.pdf' }": 'there is no such file; test/memory has some',
  "mcpTools({ command: 'npx'": 'it would download a server; test/docs/snippets.test.ts plays one',
  'chaosTool(add': 'its model calls no tool; test/testing/chaos plays one that does',
  'finishMcpSignIn({': 'no user has come back; test/mcp/sign-in.test.ts has one',
  'mcpTools({ url:': 'there is no such server; test/mcp has some',
}

const all = await examples()
const imports = await importsOfAll({ types: false })
const reasons = Object.entries(apart)
const reasonOf = (code: string) => reasons.find(([piece]) => code.includes(piece))
const runnable = all.filter(({ code }) => reasonOf(code) === undefined)

const stage: Record<string, unknown> = {}
const folder = join(root, 'test/docs', `.examples-${process.pid}`)
const before = process.cwd()
const environment = { ...process.env }
let rehearsal: rehearsing.Rehearsal
let elsewhere: string

beforeAll(async () => {
  elsewhere = await mkdtemp(join(tmpdir(), 'statewright-examples-'))
  await mkdir(folder, { recursive: true })
  rehearsal = await rehearsing.startRehearsal({
    scenario: { turns: [{ text: 'Done.' }], onExhausted: 'repeatLast' },
  })
  const model = core.openaiChat({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none' })
  const nothing = () => undefined
  Object.assign(stage, { model, log: nothing, write: nothing, expect, readFile, writeFile })
  Object.assign(stage, { OpenAI, AzureOpenAI, createBrowserInspector: () => ({ inspect: nothing }) })
  Object.assign(globalThis, { stage })
  process.chdir(elsewhere)
  await mkdir('test/scenarios', { recursive: true })
  const storedFiles = {
    'session.json': core.createSession('May'),
    'handbook.json': memory.memory({ documents: [{ source: 'a.md', text: 'A.' }] }),
    'test/scenarios/refund.json': { turns: [{ text: 'It is paid back.' }] },
  }
  for (const [name, value] of Object.entries(storedFiles)) await writeFile(name, JSON.stringify(value))
  Object.assign(process.env, { OPENAI_BASE_URL: rehearsal.url, OPENAI_API_KEY: 'none' })
  Object.assign(process.env, { AZURE_OPENAI_API_KEY: 'none', AZURE_OPENAI_ENDPOINT: rehearsal.url })
})

let ann: core.LogRecord[] | undefined

/** The records of a session 'ann', about twenty, played once. */
async function recordsOfAnn(): Promise<core.LogRecord[]> {
  const store = core.memoryStore()
  const agent = core.createAgent({ model: stage['model'] as core.ModelProvider, store })
  for (let n = 0; n < 10; n += 1) await agent.run(`Question ${n}?`, { session: 'ann' }).result
  return store.read('ann')
}

/** A separate store with that session. */
async function storeWithAnn(): Promise<core.SessionStore> {
  ann ??= await recordsOfAnn()
  const store = core.memoryStore()
  const lease = store.acquire('ann', { holder: 'a copy', ttlMs: 1_000 })
  store.append(lease, ann)
  store.release(lease)
  return store
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((thing) => thing.close()))
})

afterAll(async () => {
  process.chdir(before)
  process.env = environment
  await rehearsal.close()
  await rm(folder, { recursive: true, force: true })
  await rm(elsewhere, { recursive: true, force: true })
})

/** `console.log(…) // → expected output`. An ellipsis matches any text. */
const shown = /console\.log\((.*)\) \/\/ → (.*)$/gm
const quoted = (text: string): string => JSON.stringify(text)
const asPattern = (text: string): RegExp => new RegExp(`^${text.split(/ ?… ?/).map(escaped).join('[^]*')}$`)
const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

test('each reason not to run an example names one', () => {
  expect(reasons.filter(([piece]) => !all.some(({ code }) => code.includes(piece)))).toEqual([])
})

/** These examples check a whole agent for seconds, like test/testing/check-agent. Only the build runs them. */
const isLong = ({ code }: (typeof all)[number]) => code.includes('checkAgent(')

test.each(runsAll ? runnable : sampledRows(runnable.filter((example) => !isLong(example))))(
  'the example $place runs',
  async (example) => {
    const { place, code } = example
    const file = join(folder, `${place.replaceAll(/\W/g, '-')}.ts`)
    // Another process may listen on that port.
    const program = moduleOf(example, imports, world).replaceAll(/\bport: \d+/g, 'port: 0')
    const lines: string[] = []
    const shows = (expected: string, ...what: unknown[]): void => {
      lines.push(expected)
      expect(format(...what)).toMatch(asPattern(expected))
    }
    Object.assign(stage, { shows })
    await writeFile(
      file,
      program.replaceAll(shown, (_, reported, text: string) => `shows(${quoted(text)}, ${reported})`),
    )
    const isAboutStored =
      /\.(resume|replay|fork|readSession|rename|forget|branch|listBranches|selectBranch)\(|recordSession|pathOf|\brecording\b/.test(
        code,
      )
    Object.assign(stage, { store: isAboutStored ? await storeWithAnn() : undefined })
    // The loop must catch the errors of providers and tools.
    if (/^throw /m.test(code)) await expect(import(file)).rejects.toThrow()
    else await import(file)
    expect(lines).toEqual(Array.from(code.matchAll(shown), ([, , text]) => text))
  },
)
