import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMachine, fromPromise, setup, toPromise, type AnyActorRef } from 'xstate'
import { z } from 'zod'
import {
  createAgent,
  defineShield,
  defineTool,
  memoryStore,
  type ModelProvider,
  type PendingCall,
  type Run,
  type RunResult,
  type SessionStore,
  type Shield,
  StoreError,
} from '../../src/index.js'
import { agentMachine } from '../../machines/agent.machine.js'
import { createBudget } from '../../src/fleet/index.js'
import { durable } from '../../src/durable/index.js'
import { createInput } from '../../src/machine/index.js'
import type { Scenario } from '../../src/rehearsal/index.js'
import { tinyPdf } from '../memory/support/tiny-pdf.js'
import { book } from '../support/asking.js'
import { until } from '../support/play.js'
import { root } from './snippets.js'

type Turns = Scenario['turns']

/** The setup of a snippet, with the model's turns, the reader's definitions, and the expected outcome. */
export interface Scene {
  /** The model's turns. By default the snippet makes no request. */
  turns?: Turns
  /** The reader's definitions, in addition to a model and two tools. May prepare the folder, which is the working directory. */
  own?: (stage: { model: ModelProvider; folder: string }) => object | Promise<object>
  /** Replacements in the code, for network addresses and programs. */
  instead?: Record<string, string>
  /** Variables of the snippet whose values `expect` receives. */
  shows?: string[]
  /** Throws when the outcome is wrong. */
  expect?: (came: {
    output: string
    values: Record<string, unknown>
    bodies: () => string[]
  }) => void | Promise<void>
}

/** A snippet that does not run, and the test that covers it. */
export interface Elsewhere {
  /** The file that contains the snippet verbatim, except for the indentation. */
  partOf?: string
  /** The test that runs the snippet, or the reason that no test does. */
  because: string
}

/** Compiler errors that do not apply to JavaScript. */
export const loose: Record<string, string[]> = {
  'docs/approvals.md › Approvals and policies': ['TS2345', 'TS2532', 'TS18048'],
  'docs/approvals.md › Grants': ['TS2345', 'TS2532', 'TS18048'],
  'docs/bring-your-own-loop.md › Bring your own loop': ['TS2339', 'TS2375'],
  'docs/bring-your-own-loop.md › Watch it in Stately': ['TS2552'],
  'docs/bring-your-own-loop.md › Test its paths': ['TS2379'],
  'docs/check-an-agent.md › In your tests': ['TS2307'],
  'docs/embedding.md › Test your machine': ['TS2304'],
  'docs/guards-of-your-own.md › Custom guards': ['TS2339'],
  'docs/guards-of-your-own.md › Custom guards (2)': ['TS18046'],
  'docs/mcp.md › Sign in (2)': ['TS2304'],
  'docs/migrating.md › Migrating': ['TS2353', 'TS18046'],
  'docs/runs.md › Your own history': ['TS2322'],
  'docs/steps.md › Steps': ['TS18046'],
  'docs/telemetry.md › Export to a collector (2)': ['TS2307'],
}

const booking = book()
const budgetOfScene = createBudget({ id: 'b', usd: 1, store: memoryStore() })

const call = (name: string, input: Record<string, unknown>) => ({ toolCalls: [{ name, arguments: input }] })
const says = (text: string) => ({ text })
const signOff = 'examples/sign-off.machine.mjs'
const server = `${root}node_modules/@modelcontextprotocol/server-filesystem/dist/index.js`
const throughNode = {
  "'npx'": 'process.execPath',
  "'-y', '@modelcontextprotocol/server-filesystem'": `'${server}'`,
}

/** The skill folders on the skills page. */
async function writeSkill({ folder }: { folder: string }): Promise<object> {
  await mkdir(`${folder}/skills/code-review`, { recursive: true })
  await mkdir(`${folder}/more-skills`)
  const text = '---\nname: code-review\ndescription: How to review.\nlicense: MIT\n---\nRead it.\n'
  await writeFile(`${folder}/skills/code-review/SKILL.md`, text)
  return {}
}

/** Closable connections to in-memory places. */
function inMemoryFor(places: Map<string, SessionStore>) {
  return ({ schema, now }: { schema: string; now: () => number }): SessionStore => {
    const inner = places.get(schema) ?? memoryStore({ now })
    places.set(schema, inner)
    let isClosed = false
    const whileOpen = (method: unknown) =>
      typeof method !== 'function'
        ? method
        : (...args: unknown[]): unknown => {
            if (isClosed) throw new StoreError('store_unavailable', 'It is closed.')
            return method(...args)
          }
    const methods = Object.entries(inner).map(([name, method]) => [name, whileOpen(method)])
    return { ...Object.fromEntries(methods), close: () => void (isClosed = true) } as SessionStore
  }
}

/** A session 'may' in a store, with a payment that waits for approval. */
async function may({ model }: { model: ModelProvider }, store = memoryStore()) {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: ({ amount }) => `Paid ${amount}.`,
  })
  const agent = createAgent({ model, store, tools: [pay] })
  await agent.run('Pay the invoices of May.', { session: 'may' }).result
  return { agent, askSomebody: () => Promise.resolve({ yes: true, why: '' }) }
}

const completed =
  (name: string) =>
  ({ values }: { values: Record<string, unknown> }) => {
    expect(values[name]).toMatchObject({ state: 'COMPLETED' })
  }

const pays: Turns = [call('pay', { amount: 7 }), says('All is paid.')]

export const scenes: Record<string, Scene | Elsewhere> = {
  'README.md › Statewright (2)': {
    turns: [call('add', { a: 19, b: 23 }), says('19 + 23 is 42.')],
    expect: ({ output, bodies }) => {
      expect(output).toContain('19 + 23 is 42.\nCOMPLETED (end_turn), ')
      expect(bodies()[1]).toContain('"content":"42"')
    },
  },
  'SKILL.md › A minimal agent': {
    turns: [call('look_up', { id: '17' }), says('It is on its way.')],
    expect: ({ output, bodies }) => {
      expect(output).toContain('COMPLETED It is on its way.')
      expect(bodies()[1]).toContain('on its way')
    },
  },
  'docs/a-run-as-a-test.md › A run as a test': {
    turns: [says('It rains.')],
    own: async ({ model }) => {
      const agent = createAgent({ model, store: memoryStore() })
      await agent.run('How is it?', { session: 'ann' }).result
      return { agent }
    },
  },
  'docs/agui.md › AG-UI': {
    shows: ['agent'],
    expect: ({ values }) => {
      expect(values).toMatchObject({ handler: expect.any(Function) })
    },
  },
  'docs/agui.md › A run as events': {
    turns: [says('19 + 23 is 42.')],
    expect: ({ output }) => {
      expect(output).toMatch(/^RUN_STARTED\n[^]*TEXT_MESSAGE_CONTENT\n[^]*RUN_FINISHED\n$/)
    },
  },
  'docs/bring-your-own-loop.md › Bring your own loop': {
    turns: [call('add', { a: 19, b: 23 }), says('19 + 23 is 42.')],
    expect: ({ output, bodies }) => {
      expect(output).toContain('RUNNING → WAITING_FOR_TOOL')
      expect(output).toContain('COMPLETED 19 + 23 is 42.')
      expect(bodies()[1]).toContain('"content":"42"')
    },
  },
  'docs/bring-your-own-loop.md › Watch it in Stately': {
    own: () => ({ machine: agentMachine, input: createInput('Hello.') }),
    instead: { 'await inspector.viewed': '' },
    // The chart alone has no actors.
    expect: ({ output }) => expect(output).toMatch(/^Open http:\/\/127\.0\.0\.1:\d+\/\S+\nERROR\n$/),
  },
  'docs/bring-your-own-loop.md › Test its paths': {
    own: () => ({ machine: agentMachine }),
    expect: ({ output }) => expect(output).toMatch(/^[1-9]\d* [^]*\n0\n$/),
  },
  'docs/chat.md › Chat': { because: 'test/ui/chat-handler.test.ts' },
  'docs/chat.md › The page': { because: 'test/ui/chat-transport.test.ts' },
  'docs/chat.md › What a page may see': { because: 'test/web/pages.test.ts' },
  'docs/chat.md › Hooks': { because: 'test/web/hooks.test.ts' },
  'docs/chat.md › Which files a page may send': { because: 'test/web/page-files.test.ts' },
  'docs/chat.md › Who continues a run': { because: 'test/web/who-continues.test.ts' },
  'docs/chat.md › Stream a run without the handler': {
    turns: [says('Nothing did.')],
    shows: ['shown'],
    expect: ({ output, values }) => {
      expect(output).toBe('Nothing did.')
      expect(values.shown).toMatchObject([{ role: 'user' }, { role: 'assistant' }])
    },
  },
  'docs/chat.md › A page without useChat': {
    turns: [says('Nothing did.')],
    shows: ['served', 'page'],
    expect: ({ values }) => {
      expect((values.served as Response).status).toBe(200)
      expect(values.page).toMatchObject({ state: 'COMPLETED', items: [{}, { text: 'Nothing did.' }] })
    },
  },
  'docs/check-an-agent.md › Check an agent': {
    shows: ['report'],
    expect: ({ output, values }) => {
      expect(output).toContain('0 broken')
      expect(values.report).toMatchObject({ broken: [] })
    },
  },
  'docs/check-an-agent.md › In your tests': { because: 'test/testing/check-agent/check-agent.test.ts' },
  'docs/check-an-agent.md › Inject your own faults': {
    turns: [says('Hello.')],
    expect: ({ output }) => {
      expect(output).toBe("store_error [ { at: 1, fault: 'overloaded' } ]\n")
    },
  },
  'docs/compare-machines.md › Compare two versions of a machine': {
    expect: ({ output }) => {
      const page = readFileSync(`${root}docs/compare-machines.md`, 'utf8')
      const [, shown = ''] = /```text\n([^]*?)```/.exec(page) ?? []
      expect(output.trim()).toBe(shown.trim())
    },
  },
  'docs/compare-machines.md › Versions of the agent machine': {
    shows: ['differences'],
    expect: ({ values }) => {
      expect(values.differences).not.toEqual([])
    },
  },
  'docs/configuration.md › Configuration': {
    turns: [says('Nothing did.')],
    expect: ({ output }) => {
      expect(output).toBe('COMPLETED\n')
    },
  },
  'docs/context.md › The context window': {
    turns: [says('It is long.')],
    expect: ({ output }) => {
      expect(output).toBe('It is long.\n')
    },
  },
  'docs/control.md › Control a session from any process': {
    turns: pays,
    own: (stage) => may(stage),
    expect: ({ output }) => {
      expect(output).toBe('applied\n')
    },
  },
  'docs/control.md › Delivery': {
    turns: pays,
    own: (stage) => may(stage),
    shows: ['result'],
    expect: completed('result'),
  },
  'docs/control.md › Queue messages': {
    turns: [says('Hello.'), says('Seven.')],
    own: ({ model }) => ({ agent: createAgent({ model, store: memoryStore() }) }),
    expect: ({ output }) => {
      expect(output).toBe('waiting\n2\n')
    },
  },
  'docs/control.md › Watch a session': {
    turns: pays,
    own: (stage) => may(stage),
    shows: ['lastEventId'],
    expect: ({ values }) => {
      expect(values.lastEventId).toMatch(/^\d+\.\d+$/)
    },
  },
  'docs/principals.md › Who can start, continue and answer runs': {
    turns: [says('Hello, Ann.')],
    own: () => ({ store: memoryStore() }),
    expect: ({ output }) => {
      expect(output).toBe('stranded\n')
    },
  },
  'docs/embedding.md › Embed the machine': {
    own: () => ({
      store: memoryStore(),
      machine: createMachine({
        id: 'claim',
        initial: 'reviewing',
        states: { reviewing: { on: { APPROVE: 'paid' } }, paid: { type: 'final' } },
      }),
    }),
    shows: ['value'],
    expect: ({ values }) => {
      expect(values['value']).toBe('paid')
    },
  },
  'docs/embedding.md › Start the agent as an actor': {
    turns: [says('Nothing.')],
    shows: ['actor'],
    expect: async ({ values }) => {
      expect(await toPromise(values.actor as AnyActorRef)).toMatchObject({ output: 'Nothing.' })
    },
  },
  'docs/embedding.md › Invoke the agent in your machine': {
    turns: [call('deploy', { version: '7' }), says('Version 7 is live.')],
    shows: ['actor'],
    expect: async ({ values }) => {
      expect(await toPromise(values.actor as AnyActorRef)).toBe('COMPLETED: Version 7 is live.')
    },
  },
  'docs/embedding.md › Invoke the agent in your machine (2)': {
    turns: [says('{"kind":"SIMPLE"}')],
    shows: ['actor'],
    expect: async ({ values }) => {
      await toPromise(values.actor as AnyActorRef)
      expect((values.actor as AnyActorRef).getSnapshot().context).toEqual({ kind: 'SIMPLE' })
    },
  },
  'docs/embedding.md › Invoke the agent in your machine (3)': {
    turns: [call('deploy', { version: '7' }), says('Not deployed.')],
    own: ({ model }) => ({
      agent: createAgent({
        model,
        tools: [
          defineTool({
            name: 'deploy',
            description: 'Deploys a version.',
            input: z.object({ version: z.string() }),
            needsApproval: true,
            execute: () => 'Deployed.',
          }),
        ],
      }),
    }),
    shows: ['actor'],
    expect: async ({ values, output: printed }) => {
      const { output, messages } = await toPromise(values.actor as AnyActorRef)
      expect(output).toBe('Not deployed.')
      expect(JSON.stringify(messages)).toContain('Not today.')
      expect(printed).toMatch(/^0\n/)
    },
  },
  'docs/embedding.md › Persist your machine': {
    turns: [says('SIMPLE'), says('Dear customer.')],
    own: () => ({ bank: { transfer: async () => 'p1' } }),
    expect: ({ output }) => {
      expect(output).toBe('SIMPLE\nclosed Dear customer.\n')
    },
  },
  'docs/embedding.md › Changed charts': {
    own: () => ({
      store: memoryStore(),
      machine: createMachine({ id: 'claim', version: '2', initial: 'inReview', states: { inReview: {} } }),
    }),
  },
  'docs/embedding.md › Test your machine': {
    own: async () => {
      const store = memoryStore()
      const machine = createMachine({ id: 'claim', initial: 'reviewing', states: { reviewing: {} } })
      const claims = durable(machine, { store })
      await claims.start('claim-17')
      return { store, claims }
    },
    expect: ({ output }) => {
      expect(output).toContain('ok: true')
    },
  },
  'docs/embedding.md › Store a snapshot and continue': {
    turns: [says('Nothing.')],
    own: ({ model }) => ({ agent: createAgent({ model }) }),
    expect: ({ output }) => {
      expect(output).toContain('Nothing.')
    },
  },
  'docs/evaluations.md › Evaluations': {
    turns: Array.from({ length: 2 }, () => ({ body }) => ({
      text: JSON.stringify(body.messages).includes('France') ? 'Paris' : 'Warsaw',
    })),
    shows: ['report'],
    expect: ({ output, values }) => {
      expect(values).toMatchObject({ report: { summary: { passRate: { value: 1 } } } })
      expect(output).toMatch(/^Evaluation eval-.*passed 2 {3}failed 0/s)
    },
  },
  'docs/evaluations.md › Scorers': {
    expect: ({ values }) => {
      const { right, short } = values['score'] as Record<'right' | 'short', (...args: object[]) => unknown>
      expect(right({ output: 'It is Paris.' }, { expected: 'Paris' })).toBe(true)
      expect(short({ output: 'It is Paris.' })).toEqual({ score: true, why: '12 characters' })
    },
  },
  'docs/evaluations.md › Scorers (2)': {
    turns: [says('At eight. Welcome!'), says(JSON.stringify({ why: 'It is friendly.', score: 1 }))],
    shows: ['report'],
    expect: ({ values }) => {
      expect(values).toMatchObject({ report: { summary: { mean: { value: 1 } } } })
    },
  },
  'docs/events.md › Events': {
    turns: [says('Nothing did.')],
    expect: ({ output }) => {
      expect(output).toContain('Nothing did.')
    },
  },
  'docs/express.md › Express (2)': {
    turns: [says('Hello, Ann.'), says('Hello again.')],
    instead: { 'app.listen(3000)': 'app.listen(0)' },
    shows: ['agent'],
    expect: ({ values }) => servesBoth(values.server as Server),
  },
  'docs/fleet.md › Budgets': {
    turns: [says('Nothing.')],
    own: ({ model }) => ({
      store: memoryStore(),
      prices: { [model.model]: { inputPerMillion: 1, outputPerMillion: 2 } },
    }),
    expect: ({ output }) => expect(output).toMatch(/^COMPLETED \{ usd: 0\.0000\d+, tokens: \d+ \}\n$/),
  },
  'docs/fleet.md › Wait for the next window': {
    turns: [says('Nothing.')],
    own: ({ model }) => ({
      store: memoryStore(),
      prices: { [model.model]: { inputPerMillion: 1, outputPerMillion: 2 } },
    }),
    expect: ({ output }) => expect(output).toBe('COMPLETED\n'),
  },
  'docs/fleet.md › Options': {
    own: () => ({ budget: budgetOfScene }),
    shows: ['held'],
    expect: async () => {
      expect((await budgetOfScene.status()).spent).toEqual({ usd: 0.011, tokens: 900 })
    },
  },
  'docs/fleet.md › Rate limits': {
    turns: [says('All is well.')],
    expect: ({ output }) => expect(output).toBe('COMPLETED 0\n'),
  },
  'docs/fleet.md › One limit for several processes': {
    turns: [says('Done.')],
    expect: ({ output }) => expect(output).toBe('COMPLETED\n'),
  },
  'docs/fleet.md › Batches (2)': {
    turns: [says('All is well.'), says('All is well.')],
    expect: ({ output }) =>
      expect(output).toBe('april reports.april All is well.\nmay reports.may All is well.\n'),
  },
  'docs/fleet.md › Start sessions at fixed times': {
    turns: [says('Done.')],
    expect: ({ output }) => expect(output).toBe('1\n'),
  },
  'docs/fleet.md › Wake sleeping sessions': { expect: ({ output }) => expect(output).toBe('0\n') },
  'docs/fleet.md › Send to many sessions': {
    turns: [says('Hello.')],
    own: ({ model }) => {
      const store = memoryStore()
      return { store, agent: createAgent({ model, store }) }
    },
    expect: ({ output }) => expect(output).toBe('0\n'),
  },
  'docs/guardrails.md › Guardrails': {},
  'docs/guardrails.md › Final answer within the budget': {
    turns: [says('Nothing.')],
    expect: ({ output }) => expect(output).toBe('COMPLETED Nothing.\n'),
  },
  'docs/guardrails.md › Tune on your own sessions': {
    turns: [says('Nothing.')],
    own: ({ model }) => ({ agent: createAgent({ model }) }),
    shows: ['findings', 'halt'],
    expect: ({ values }) => {
      expect(values).toMatchObject({ findings: [], halt: null })
    },
  },
  'docs/guards-of-your-own.md › Custom guards': { because: 'test/scenarios/guards-example.test.ts' },
  'docs/guards-of-your-own.md › Custom guards (2)': { because: 'test/scenarios/guards-example.test.ts' },
  'docs/handoffs.md › Handoffs': {
    turns: [
      call('transfer_to_billing', {}),
      call('refund', { bill: 'B7' }),
      says('I have refunded bill B7.'),
    ],
    expect: ({ output }) => expect(output).toBe('null → billing\nI have refunded bill B7.\n'),
  },
  'docs/hono.md › Hono (2)': {
    turns: [says('Hello, Ann.'), says('Hello again.')],
    instead: { 'port: 3000': 'port: 0' },
    shows: ['agent'],
    expect: ({ values }) => servesBoth(values.server as Server),
  },
  'docs/hosts.md › Hosts: DBOS, Restate and other engines': {
    partOf: 'examples/hosts/dbos.mjs',
    because: 'test/hosts/random.mjs',
  },
  'docs/hosts.md › Restate': { partOf: 'examples/hosts/restate.mjs', because: 'test/hosts/random.mjs' },
  'docs/hosts.md › Start sessions at fixed times': {
    partOf: 'examples/hosts/schedules.mjs',
    because: 'test/hosts/schedules.mjs',
  },
  'docs/hosts.md › Start sessions at fixed times (2)': {
    partOf: 'examples/hosts/schedules.mjs',
    because: 'test/hosts/schedules.mjs',
  },
  'docs/hosts.md › Cloudflare Durable Objects': {
    partOf: 'examples/hosts/durable-object.mjs',
    because: 'test/runtimes/main.mjs',
  },
  'docs/hosts.md › Recipes for other engines': { because: 'the server of Temporal is not here' },
  'docs/hosts.md › Recipes for other engines (2)': { because: 'the server of Inngest is not here' },
  'docs/hosts.md › Recipes for other engines (3)': { because: 'the runtime of Workflow DevKit is not here' },
  'docs/deferred-tools.md › Deferred tools': {
    turns: [
      { toolCalls: [{ name: 'tool_search', arguments: { query: 'invoice' } }] },
      { toolCalls: [{ name: 'get_invoice', arguments: { id: '7' } }] },
      says('It says 42.'),
    ],
    expect: ({ output, bodies }) => {
      expect(output).toBe("[ 'get_invoice' ]\nIt says 42.\n")
      expect(bodies()[2]).toContain('The invoice 7.')
    },
  },
  'docs/deferred-tools.md › Provider-side search': {
    because: 'test/scenarios/hosted-tool-search.test.ts',
  },
  'docs/deferred-tools.md › The search (2)': {},
  'docs/mcp.md › MCP (2)': {
    turns: [call('files_list_allowed_directories', {}), says('One folder.')],
    instead: throughNode,
    expect: ({ output }) => {
      expect(output).toBe('files_list_allowed_directories\nOne folder.\n')
    },
  },
  'docs/mcp.md › Sign in': { because: 'test/mcp/sign-in.test.ts' },
  'docs/mcp.md › Sign in (2)': { because: 'test/mcp/sign-in.test.ts' },
  'docs/mcp.md › Resources and prompts': { because: 'test/mcp/resources.test.ts' },
  'docs/mcp.md › Elicitation': {
    turns: [call('book', {}), says('Booked.')],
    own: ({ model }) => ({ agent: createAgent({ model, tools: [booking] }) }),
    shows: ['run'],
    expect: async ({ output, values }) => {
      await (values['run'] as Run).result
      expect(output).toMatch(/^airline asks: Which seat\? \{\n {2}seat: /)
      expect(booking.does).toEqual([[{ flight: null }, { action: 'accept', content: { seat: '12A' } }]])
    },
  },
  'docs/mcp.md › Serve agents (2)': {
    expect: ({ output }) => {
      expect(output).toBe('401\n')
    },
  },
  'docs/memory.md › Memory': {
    expect: ({ output }) => {
      expect(output).toMatch(
        /source: 'leave\.md',\s+text: 'Everyone has 30 days of vacation a year\.',\s+score: \d/,
      )
    },
  },
  'docs/memory.md › Memory (2)': {
    own: () => ({ documents: [{ source: 'a.md', text: 'A.' }] }),
    shows: ['handbook'],
    expect: ({ values }) => {
      expect(values.handbook).toMatchObject({ size: 1 })
    },
  },
  'docs/memory.md › Documents of one user': {
    turns: [call('search_documents', { query: 'When is the offsite?' }), says('In May.')],
    expect: ({ output, bodies }) => {
      expect(output).toContain('In May.')
      expect(bodies().at(-1)).toContain('The offsite is in May.')
    },
  },
  'docs/memory.md › Attachments': {
    own: async ({ folder }) => {
      const { mkdir, writeFile } = await import('node:fs/promises')
      await mkdir(`${folder}/uploads`)
      await writeFile(`${folder}/uploads/report.pdf`, tinyPdf('The report.'))
      const site = createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' })
        response.end('<p>A page.</p>')
      })
      await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
      return { page: `http://127.0.0.1:${(site.address() as AddressInfo).port}/`, site }
    },
    instead: {
      "'https://example.com/' }, {": "globalThis.page }, { allowAddresses: ['127.0.0.1'],",
    },
    shows: ['known'],
    expect: ({ values }) => {
      expect(values.known).toMatchObject({ size: 3 })
    },
  },
  'docs/migrating.md › Migrating': {
    expect: ({ output }) => expect(output).toContain('maxTurns is not a known key. Use limits.maxSteps.'),
  },
  'docs/migrating.md › From the Vercel AI SDK (2)': {
    turns: [says('Less rain.')],
    expect: ({ output }) => expect(output).toBe('Less rain. end_turn\n'),
  },
  'docs/migrating.md › From the OpenAI Agents SDK (2)': {
    turns: [says('{"total":7}')],
    expect: ({ output }) => expect(output).toBe('7\n'),
  },
  'docs/migrating.md › From LangGraph (2)': {
    turns: [says('Less rain.')],
    expect: ({ output }) => expect(output).toBe('Less rain.\n'),
  },
  'docs/migrating.md › From Strands Agents (2)': {
    turns: [says('Less rain.')],
    expect: ({ output }) => expect(output).toBe('COMPLETED end_turn\n'),
  },
  'docs/migrating.md › From Llama Stack (2)': {
    turns: [says('Less rain.')],
    expect: ({ output }) => expect(output).toBe('COMPLETED\n'),
  },
  'docs/migrating.md › From aar and OpenHuman (2)': {
    turns: [says('Less rain.')],
    expect: ({ output }) => expect(output).toBe('COMPLETED\n'),
  },
  'docs/models.md › Models': {
    turns: [{ text: 'It is 4.' }],
    shows: ['agent'],
    expect: async ({ values }) => {
      expect(await ask(values.agent)).toMatchObject({ state: 'COMPLETED', output: 'It is 4.' })
    },
  },
  'docs/models.md › The Responses API': {
    turns: [{ reasoning: 'I look.', text: 'It is 4.' }],
    shows: ['agent'],
    expect: async ({ values, bodies }) => {
      expect(await ask(values.agent)).toMatchObject({ state: 'COMPLETED', output: 'It is 4.' })
      expect(bodies()[0]).toContain('"tools":[{"type":"web_search"}]')
    },
  },
  'docs/models.md › AI SDK models': {
    turns: [says('Hello.')],
    shows: ['model'],
    expect: async ({ values }) => {
      const agent = createAgent({ model: values.model as ModelProvider })
      expect(await ask(agent)).toMatchObject({ state: 'COMPLETED', output: 'Hello.' })
    },
  },
  'docs/models.md › Fallback models': {
    turns: [{ status: 503 }, { text: 'It is 4.' }],
    own: ({ model }) => ({ openaiChat: () => ({ ...model, model: 'llama3.3' }) }),
    shows: ['agent'],
    expect: async ({ values, bodies }) => {
      expect(await ask(values.agent)).toMatchObject({ state: 'COMPLETED', output: 'It is 4.' })
      expect(bodies()).toHaveLength(2)
    },
  },
  'docs/models.md › A custom provider': {
    own: () => ({ lookUp: () => Promise.resolve('Polly.') }),
    shows: ['agent'],
    expect: async ({ values }) => {
      expect(await ask(values.agent)).toMatchObject({ state: 'COMPLETED', output: 'Polly.' })
    },
  },
  'docs/models.md › A custom provider (2)': {
    shows: ['broken'],
    expect: ({ values }) => {
      expect(values.broken).toEqual([])
    },
  },
  'docs/next.md › Next': {
    turns: [says('Hello, Ann.')],
    shows: ['agent'],
    expect: async ({ values }) => {
      const { GET, POST } = values as Record<string, (request: Request) => Promise<Response>>
      const chatRequest = new Request(
        'http://next.test/api/chat',
        messageRequest('c1', { parts: [{ type: 'text', text: 'Hi.' }] }),
      )
      expect(await (await POST?.(chatRequest))?.text()).toContain('Hello, Ann.')
      const headers = { 'x-user': 'ann' }
      const history = await GET?.(new Request('http://next.test/api/chat/c1', { headers }))
      expect(await history?.json()).toHaveLength(2)
    },
  },
  'docs/node-http.md › node:http (2)': {
    turns: [says('Hello, Ann.'), says('Hello again.')],
    instead: { 'server.listen(3000)': 'server.listen(0)' },
    shows: ['agent'],
    expect: ({ values }) => servesBoth(values.server as Server),
  },
  'docs/presets.md › Presets': {},
  'docs/properties.md › Properties over time': {
    expect: ({ output }) => {
      const page = readFileSync(`${root}docs/properties.md`, 'utf8')
      const [, shown = ''] = /```text\n([^]*?)```/.exec(page) ?? []
      expect(output.trim()).toBe(shown.trim())
    },
  },
  'docs/properties.md › Keep a counterexample as a test': {
    own: () => ({ reports: {} }),
    shows: ['text'],
    expect: ({ values }) => {
      expect(values.text).toContain(`import { checkStory } from 'statewright/testing'`)
    },
  },
  'docs/rehearsals.md › Rehearsals': {
    shows: ['rehearsal', 'model'],
    expect: async ({ values }) => {
      const agent = createAgent({ model: values.model as ModelProvider })
      expect(await agent.run('Hi.').result).toMatchObject({ output: 'Hello.' })
      await (values.rehearsal as { close(): Promise<void> }).close()
    },
  },
  'docs/replay-and-fork.md › Replay and fork': {
    turns: pays,
    own: (stage) => may(stage),
    shows: ['then', 'other'],
    expect: ({ values, output }) => {
      expect(output).toMatch(/^WAITING_FOR_INPUT 2 \d+\n$/)
      ;(values.other as { cancel(): void }).cancel()
    },
  },
  'docs/replay-and-fork.md › Change something in a fork': {
    turns: pays,
    own: (stage) => may(stage),
    shows: ['june', 'pending'],
    expect: ({ values }) => {
      expect(values).toMatchObject({ june: expect.any(String) as string, pending: [{ name: 'pay' }] })
    },
  },
  'docs/replay-and-fork.md › Branches of a session': {
    turns: [says('One.'), says('Two.'), says('Three.')],
    own: async ({ model }) => {
      const agent = createAgent({ model, store: memoryStore() })
      await agent.run('Pay the invoices of May.', { session: 'may' }).result
      return { agent }
    },
    expect: ({ output }) => {
      expect(output).toBe('1 false 2\n2 false 2\n3 true 2\n')
    },
  },
  'docs/resume.md › Resume and answer runs': {
    turns: pays,
    own: (stage) => may(stage),
    shows: ['result'],
    expect: completed('result'),
  },
  'docs/retrofit.md › 1. Measure your loop (2)': {
    own: () => ({ rows: [{ role: 'user', content: 'Hello.' }] }),
    expect: ({ output }) => {
      expect(output).toBe('0 undefined\n')
    },
  },
  'docs/retrofit.md › 2. Replace the loop, keep the rest': {
    own: () => ({
      rows: [
        { role: 'user', content: 'Hello.' },
        { role: 'assistant', content: 'Hello.' },
      ],
      myClient: { complete: async () => ({ text: 'It is on its way.', toolCalls: [], usage: null }) },
      findOrder: () => 'on its way',
      save: () => undefined,
    }),
    expect: ({ output }) => {
      expect(output).toBe('COMPLETED It is on its way.\n')
    },
  },
  'docs/runs.md › Runs': {
    turns: [
      {
        toolCalls: [
          ...call('remove', {}).toolCalls,
          ...call('look', {}).toolCalls,
          ...call('send', {}).toolCalls,
        ],
      },
      says('Done.'),
    ],
    own: ({ model }) => {
      const create = (name: string, how: object) =>
        defineTool({ name, description: name, input: z.object({}), execute: () => 'ran', ...how })
      const tools = [
        create('remove', { needsApproval: true }),
        create('send', { needsApproval: true }),
        defineTool({ name: 'look', description: 'look', input: z.object({}), client: true }),
      ]
      return {
        agent: createAgent({ model, tools }),
        askSomebody: (name: string) => Promise.resolve(name === 'remove'),
        runItHere: ({ name }: PendingCall) => Promise.resolve(`${name} ran here`),
      }
    },
    shows: ['result'],
    expect: (came) => {
      completed('result')(came)
      const contents = (came.values.result as RunResult).messages.map(({ content }) => content)
      expect(contents).toEqual(
        expect.arrayContaining(['ran', 'look ran here', expect.stringContaining('Not this one.')]),
      )
    },
  },
  'docs/runs.md › Your own history': {
    turns: [says('To Ada.')],
    shows: ['messages'],
    expect: ({ values }) => {
      expect(values.messages).toHaveLength(6)
    },
  },
  'docs/runs.md › Interactive runs': {
    turns: [says('Nothing.'), says('Prices.')],
    expect: ({ output }) => {
      expect(output).toContain('Nothing.')
      expect(output).toContain('WAITING_FOR_INPUT message Prices.')
    },
  },
  'docs/scale.md › Run sessions on several machines': {
    turns: [says('Paid.')],
    shows: ['rest'],
    expect: ({ values }) => {
      expect(values.rest).toMatchObject({ session: 'order-17', state: 'COMPLETED', output: 'Paid.' })
    },
  },
  'docs/scale.md › Which agent may continue a run': {
    turns: [says('Written.')],
    own: () => ({ store: memoryStore() }),
    shows: ['agents'],
    expect: ({ output, values }) => {
      expect(output).toBe('[]\n')
      expect(values.agents).toMatchObject({ names: ['support', 'billing'] })
    },
  },
  'docs/scale.md › Shut down a process': { because: 'test/scenarios/drive.test.ts' },
  'docs/sessions.md › Sessions': {
    turns: [says('Noted.'), says('Ada.')],
    shows: ['second'],
    expect: ({ values, bodies }) => {
      expect(values.second).toMatchObject({ output: 'Ada.' })
      expect(bodies()[1]).toContain('My cat is called Ada.')
    },
  },
  'docs/sessions.md › List sessions': {
    turns: [says('On its way.')],
    own: ({ model }) => {
      const store = memoryStore()
      return { store, agent: createAgent({ model, store }) }
    },
    shows: ['page', 'next'],
    expect: ({ values }) => {
      expect([values.page, values.next]).toEqual([[], []])
    },
  },
  'docs/sessions.md › Titles': {
    turns: [says('On its way.')],
    own: async ({ model }) => {
      const store = memoryStore()
      const agent = createAgent({ model, store })
      await agent.run('Where is my parcel?', { session: 'ann:1', tags: { user: 'ann' } }).result
      return { store, agent }
    },
    expect: ({ output }) => {
      expect(output).toBe('The parcel from Lisbon\n')
    },
  },
  'docs/shields.md › Shields': {
    turns: [says('It is Project Falcon.')],
    own: () => ({ client: moderating }),
    shows: ['agent'],
    expect: async ({ values }) => {
      expect(await ask(values.agent)).toMatchObject({ state: 'BLOCKED' })
    },
  },
  'docs/shields.md › Write a shield': {
    shows: ['noPrices', 'classifier'],
    expect: async ({ values }) => {
      const { check } = values.noPrices as Shield
      expect(await check('5 €', {} as never)).toMatchObject({ action: 'block' })
    },
  },
  'docs/shields.md › Built in': { own: () => ({ client: moderating }) },
  'docs/shields.md › Run shields directly': {
    own: () => ({
      text: 'All is well.',
      noPrices: defineShield({ name: 'no-prices', check: () => true as never }),
    }),
    instead: {},
    shows: ['action'],
    expect: ({ values }) => {
      expect(values.action).toBe('block')
    },
  },
  'docs/skills.md › Skills': {
    own: writeSkill,
    shows: ['reviewer'],
    expect: ({ values }) => expect(values.reviewer).toHaveProperty('machine'),
  },
  'docs/skills.md › Restrict the tools': {
    expect: ({ output }) => expect(output).toBe('true\n'),
  },
  'docs/skills.md › Choose skills': {
    own: writeSkill,
    expect: ({ output }) => expect(output).toBe("[ 'code-review' ]\n"),
  },
  'docs/skills.md › Without files': {
    shows: ['listed'],
    expect: ({ values }) => expect(values.listed).toMatchObject({ list: [{ name: 'code-review' }] }),
  },
  'docs/skills.md › Project instructions': {
    own: async ({ folder }) => {
      await writeFile(`${folder}/AGENTS.md`, 'Run the tests.')
      return {}
    },
    shows: ['instructions'],
    expect: ({ values }) => expect(values.instructions).toBe('Instructions in AGENTS.md:\n\nRun the tests.'),
  },
  'docs/approvals.md › Approvals and policies': {
    turns: [{ toolCalls: [{ name: 'transfer', arguments: { to: 'acme', amount: 500 } }] }, { text: 'Paid.' }],
    expect: ({ output }) => expect(output).toBe('Large payments need approval.\nCOMPLETED\n'),
  },
  'docs/approvals.md › Approvers': {
    turns: [{ toolCalls: [{ name: 'read', arguments: {} }] }, { text: 'Done.' }],
    shows: ['pending'],
    expect: ({ values }) =>
      expect(values.pending).toMatchObject([{ approvers: [{ roles: ['finance'], count: 2 }] }]),
  },
  'docs/approvals.md › Expiry': {
    turns: [{ toolCalls: [{ name: 'read', arguments: {} }] }],
    expect: ({ output }) => expect(output).toBe('true\n'),
  },
  'docs/approvals.md › Grants': {
    turns: [{ toolCalls: [{ name: 'transfer', arguments: { to: 'acme', amount: 100 } }] }, { text: 'Paid.' }],
    shows: ['grants'],
    expect: ({ values }) => expect(values.grants).toMatchObject([{ tool: 'transfer', uses: 10 }]),
  },
  'docs/approvals.md › Cedar': {
    turns: [{ toolCalls: [{ name: 'pay', arguments: { amount: 500 } }] }],
    shows: ['pending'],
    expect: ({ values }) => expect(values.pending).toMatchObject([{ name: 'pay', needs: 'approval' }]),
  },
  'docs/approvals.md › Open Policy Agent': {
    shows: ['policy'],
    expect: ({ values }) => expect(values.policy).toMatchObject({ id: 'opa' }),
  },
  'docs/sleep.md › Sleep': {
    turns: [{ toolCalls: [{ name: 'wait_for_payment', arguments: {} }] }],
    expect: ({ output }) => expect(output).toBe('PAUSED sleeping\n'),
  },
  'docs/stately.md › A session in the editor': {
    own: () => ({ store: memoryStore() }),
    shows: ['studio'],
    expect: async ({ values }) => {
      const studio = values.studio as { url: string; close(): Promise<void> }
      expect(studio.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=/)
      await studio.close()
    },
  },
  'docs/stately.md › Watch a run (2)': { because: 'it waits until a person opens the page' },
  'docs/stately.md › Watch a run (3)': { because: 'it needs a window' },
  'docs/steps.md › Steps': {
    turns: [call('search', { query: 'rivers' }), says('Rivers flow.')],
    expect: ({ output, bodies }) => {
      expect(output).toBe('Rivers flow.\n')
      expect(bodies()[0]).toContain('You write for children.')
    },
  },
  'docs/steps.md › A tool that ends the run': {
    turns: [call('submit_report', { title: 'Rivers', text: 'They flow.' })],
    expect: ({ output }) => expect(output).toBe('{"title":"Rivers","words":2}\n'),
  },
  'docs/steps.md › Stop when the results are sufficient': {
    shows: ['booking'],
    expect: ({ values }) => expect(values.booking).toHaveProperty('machine'),
  },
  'docs/stores.md › Stores': {
    expect: ({ output }) => {
      expect(output).toBe('0\n')
    },
  },
  'docs/stores.md › Write a store': {
    turns: [says('Secret.')],
    own: () => ({ key: randomBytes(32) }),
    shows: ['agent'],
    expect: async ({ values }) => {
      expect(await ask(values.agent)).toMatchObject({ output: 'Secret.' })
      const { readFile } = await import('node:fs/promises')
      expect((await readFile('.sessions/sessions.db')).includes('Secret.')).toBe(false)
    },
  },
  'docs/stores.md › Check a store': {
    own: () => ({ myStore: inMemoryFor(new Map()) }),
    shows: ['broken'],
    expect: ({ values }) => {
      expect(values.broken).toEqual([])
    },
  },
  'docs/structured-output.md › Structured output': {
    turns: [says('{"city":"Paris","days":2}')],
    shows: ['city', 'days'],
    expect: ({ values }) => {
      expect(values).toEqual({ city: 'Paris', days: 2 })
    },
  },
  'docs/structured-output.md › Streaming': {
    turns: [says('{"city":"Paris","days":2}')],
    own: ({ model }) => ({
      agent: createAgent({ model, output: z.object({ city: z.string(), days: z.int() }) }),
    }),
    shows: ['object'],
    expect: ({ output, values }) => {
      expect(values.object).toEqual({ city: 'Paris', days: 2 })
      expect(output.trim()).toMatch(/Paris.+2 ?}$/)
    },
  },
  'docs/studio.md › Studio (2)': {
    turns: [says('Nothing.')],
    shows: ['store', 'studio'],
    expect: async ({ values, output }) => {
      expect(output).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=/)
      // Otherwise the run of the snippet would retry after its server has stopped.
      const store = values.store as SessionStore
      await until(() => JSON.stringify(store.read('work')).includes('Nothing.'))
      await (values.studio as { close(): Promise<void> }).close()
    },
  },
  'docs/studio.md › Embedded actors': {
    turns: [says('Nothing.')],
    shows: ['actor', 'studio'],
    expect: async ({ values }) => {
      expect(await toPromise(values.actor as AnyActorRef)).toMatchObject({ output: 'Nothing.' })
      await (values.studio as { close(): Promise<void> }).close()
    },
  },
  'docs/sub-agents.md › Sub-agents': {
    turns: [call('research', { task: 'Herons.' }), says('They wade.'), says('Herons wade.')],
    shows: ['output', 'usage'],
    expect: ({ values }) => {
      expect(values).toMatchObject({ output: 'Herons wade.', usage: { totalTokens: expect.any(Number) } })
    },
  },
  'docs/sub-agents.md › Answer approval requests of a sub-agent': {
    turns: [
      call('clerk', { task: 'Pay 7.' }),
      call('pay', { amount: 7 }),
      says('Paid.'),
      says('All is paid.'),
    ],
    own: async ({ model }) => {
      const clerk = createAgent({ model, tools: [await payTool()] })
      const lead = createAgent({ model, tools: [clerk.asTool({ name: 'clerk', description: 'Pays.' })] })
      return { run: lead.run('Pay 7.') }
    },
    expect: async () => {
      const { run } = globalThis as unknown as { run: { result: Promise<unknown> } }
      expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'All is paid.' })
    },
  },
  'docs/telemetry.md › Telemetry': {
    shows: ['analyst'],
    expect: ({ values }) => {
      expect((values.analyst as { config: object }).config).toMatchObject({ stream: true })
    },
  },
  'docs/telemetry.md › Export to a collector (2)': {
    because: 'it needs a collector, and packages of the SDK',
  },
  'docs/test-your-own-agent.md › Test your own agent': {
    own: () => ({
      machine: setup({
        types: {} as { context: { a: boolean; b: boolean } },
        actors: { model: fromPromise(() => Promise.resolve('Hi.')) },
      }).createMachine({
        context: { a: false, b: false },
        initial: 'asking',
        states: {
          asking: {
            invoke: { id: 'model', src: 'model', onDone: 'answered' },
            on: { CANCEL: 'cancelled' },
          },
          answered: { type: 'final' },
          cancelled: { type: 'final' },
        },
      }),
    }),
    shows: ['paths', 'coverage'],
    expect: ({ values, output }) => {
      expect(values.paths).toHaveLength(2)
      expect(output).toContain('2 of 2')
    },
  },
  'docs/test-your-own-agent.md › Test your own agent (2)': {
    partOf: signOff,
    because: 'a part of the machine',
  },
  'docs/test-your-own-agent.md › Test your own agent (3)': {
    partOf: signOff,
    because: 'a part of the machine',
  },
  'docs/test-your-own-agent.md › 1. Describe the events': {
    partOf: signOff,
    because: 'a part of the example',
  },
  'docs/test-your-own-agent.md › 1. Describe the events (2)': {
    partOf: signOff,
    because: 'a part of the example',
  },
  'docs/test-your-own-agent.md › 2. Generate the paths (2)': { because: 'test/examples/sign-off.test.ts' },
  'docs/test-your-own-agent.md › 3. State the rule': { partOf: signOff, because: 'a part of the example' },
  'docs/test-your-own-agent.md › 3. State the rule (2)': { because: 'test/examples/sign-off.test.ts' },
  'docs/test-your-own-agent.md › 3. State the rule (4)': {
    partOf: signOff,
    because: 'a part of the machine',
  },
  'docs/test-your-own-agent.md › 4. Replay on the live machine': { because: 'test/graph/paths.test.ts' },
  'docs/tools.md › Tools': {
    own: () => ({ blocked: () => false, bank: { transfer: () => Promise.resolve('ok') } }),
  },
  'docs/tools.md › Tools (2)': {
    own: () => ({ screenshot: () => Promise.resolve(new Uint8Array([137, 80])) }),
  },
  'docs/tools.md › Tools (3)': {
    turns: [says('Somebody.')],
    own: () => ({ db: { find: () => Promise.resolve('Ann') } }),
  },
  'docs/tools.md › Jobs that outlive the process': {
    own: () => ({ exporter: { begin: () => Promise.resolve('job 1'), wait: () => Promise.resolve('ok') } }),
  },
  'docs/tools.md › Tools of the AI SDK': {
    turns: [{ toolCalls: [{ name: 'weather', arguments: { city: 'Lisbon' } }] }, says('Sunny.')],
    shows: ['agent'],
    expect: async ({ values, bodies }) => {
      expect(await ask(values.agent)).toMatchObject({ output: 'Sunny.' })
      expect(bodies()[1]).toContain('Sunny in Lisbon.')
    },
  },
}

/** Passes all content, without a network. */
const moderating = {
  moderations: {
    create: () => Promise.resolve({ results: [{ flagged: false, categories: {}, category_scores: {} }] }),
  },
}

async function payTool() {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: ({ amount }) => `Paid ${amount}.`,
  })
}

async function ask(agent: unknown): Promise<RunResult> {
  return (agent as { run(input: string): { result: Promise<RunResult> } }).run('Go.').result
}

function messageRequest(id: string, words: object): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-user': 'ann' },
    body: JSON.stringify({ id, threadId: id, runId: 'r1', messages: [{ id: 'u1', role: 'user', ...words }] }),
  }
}

/** Chats and AG-UI over real HTTP, for authorized users. */
async function servesBoth(server: Server): Promise<void> {
  if (!server.listening) await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`
  const answerTo = async (path: string, words: object): Promise<string> =>
    (await fetch(base + path, messageRequest('c1', words))).text()
  try {
    expect(await answerTo('/chat', { parts: [{ type: 'text', text: 'Hi.' }] })).toContain('Hello, Ann.')
    const again = messageRequest('c2', { content: 'Hi.' })
    expect(await (await fetch(`${base}/agui`, again)).text()).toContain('RUN_FINISHED')
    expect((await fetch(`${base}/chat/c1`)).status).toBe(401)
    expect((await fetch(`${base}/agui/c2`, { headers: { 'x-user': 'ann' } })).status).toBe(200)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}
