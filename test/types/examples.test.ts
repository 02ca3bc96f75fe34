import { type Complaint, compile } from './compile.js'
import { longTest } from '../support/extent.js'
import { examples, importsOfAll, methodsOf, moduleOf, publicExports } from './doc-examples.js'

/** Undeclared names in examples, for the reader's definitions, and the values of every run. */
const world = `
import { readFile, writeFile } from 'node:fs/promises'
import { expect } from '@jest/globals'
import { createBrowserInspector } from '@statelyai/inspect'
import { AzureOpenAI, OpenAI } from 'openai'
import { createActor, createMachine, fromPromise, initialTransition, setup, SimulatedClock, toPromise, transition } from 'xstate'
import * as z from 'zod'
declare const model: ModelProvider
const add = defineTool({ name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), execute: ({ a }) => a })
const budget = createBudget({ id: 'tenant-acme', usd: 20, per: 'day', store: memoryStore() })
const agent = createAgent({ model, tools: [add] })
const researcher = agent
const run = agent.run('Go.')
const result = await run.result
const { usage } = result
declare const signal: AbortSignal
declare const controller: AbortController
declare const tools: Tool[]
declare const search: (query: string, options: { signal?: AbortSignal }) => Promise<RetrievedSnippet[]>
declare const loaded: Tool[]
declare const documents: MemoryDocument[]
declare const session: Session
declare const recording: Recording
declare const text: string
declare const message: string
declare const token: string
declare const apiVersion: string
declare const error: unknown
declare const later: () => Promise<void>
declare const readIn: (root: string) => Tool
declare const listIn: (root: string) => Tool
interface Db { find(id: string, options: { signal: AbortSignal }): Promise<string> }
const claimMachine = setup({
  types: { input: {} as { amount: number }, context: {} as { amount: number }, events: {} as { type: 'APPROVE'; by: string } },
  actors: { pay: fromPromise<string>(async () => 'p1') },
}).createMachine({
  id: 'claim',
  context: ({ input }) => input,
  initial: 'reviewing',
  states: { reviewing: { on: { APPROVE: 'paying' } }, paying: { invoke: { src: 'pay' } } },
})
declare const store: SessionStore
const pay = fromPromise<string>(async () => 'p1')
const claims = durable(claimMachine, { store })
const machine = createMachine({
  types: {} as { context: { signatures: number; steps: number } },
  context: { signatures: 0, steps: 0 },
  initial: 'closed',
  states: { closed: { on: { OPEN: 'open' } }, open: { on: { CLOSE: 'closed' } } },
})
const alphabet = { open: { type: 'OPEN' }, close: { type: 'CLOSE' } }
const paths = generatePaths(machine, { alphabet }).paths as [MachinePath, ...MachinePath[]]
const chart = toChart(machine)
declare const createHarness: () => ReplayHarness
`

/** Parameters typed by their context, the code after "and so on", and unused results. */
const isLeftOpen = ({ code, message }: Complaint): boolean =>
  /^TS(7006|7031|7005|7034|2695|6133)$/.test(code) || message.includes("'andSoOn'")

longTest(
  'examples of doc comments compile, and use no unknown name',
  async () => {
    const all = await examples()
    expect(all.length).toBeGreaterThan(200)
    const imports = await importsOfAll({ types: true })
    const errors = await compile(all.map((example) => moduleOf(example, imports, world)))
    const wrong = all.flatMap(({ place, code }, index) => {
      const complaints = (errors[index] ?? []).filter((complaint) => !isLeftOpen(complaint))
      return complaints.length === 0 ? [] : [{ place, code, complaints }]
    })
    expect(wrong).toEqual([])
  },
  120_000,
)

test('every function, class and value that an entry point exports has an example', async () => {
  const all = (await publicExports()).filter(({ isType }) => !isType)
  expect(all.length).toBeGreaterThan(80)
  const without = all.filter(({ comment }) => !/@example\b|^ *\* ```ts$/m.test(comment))
  expect(without.map(({ entry, name }) => `${name} of ${entry}`)).toEqual([])
})

/** The objects that users hold and call, without internals of the runtime. */
const handles: [name: string, ofTheRuntime: string[]][] = [
  ['Agent', []],
  ['Run', ['constructor']],
  ['Session', ['constructor', 'state', 'acquire', 'update', 'release']],
  ['SessionStore', []],
  ['Memory', []],
  ['Rehearsal', []],
  ['McpServer', []],
]

test.each(handles)('every method of %s has an example', async (handle, ofTheRuntime) => {
  const methods = (await methodsOf(handle)).filter(({ name }) => !ofTheRuntime.includes(name))
  expect(methods.length).toBeGreaterThan(0)
  expect(methods.filter(({ comment }) => !comment.includes('@example')).map(({ name }) => name)).toEqual([])
})
