import { longDescribe } from '../support/extent.js'
import { compile } from './compile.js'

const prelude = `
import { createAgent, defineTool, type ModelProvider, type ToolExecution } from 'statewright'
import * as z from 'zod'
import * as z3 from 'zod/v3'
declare const model: ModelProvider
const sum = z.object({ a: z.number(), b: z.number() })
const add = defineTool({ name: 'add', description: 'Adds.', input: sum, execute: ({ a, b }) => a + b })
const late = z.object({ day: z.iso.date(), times: z.number().default(1) })
const book = defineTool({ name: 'book', description: 'Books.', input: late, client: true })
interface Db { rows: string[] }
const find = defineTool({
  name: 'find',
  description: 'Finds.',
  input: z.object({ text: z.string() }),
  execute: ({ text }, { context }: ToolExecution<{ db: Db }>) => context.db.rows.filter((row) => row.includes(text)),
})
export const used = [z3, model, add, book, find, createAgent]
const plain = createAgent({ model, tools: [add, book] })
const withDb = createAgent({ model, tools: [add, find] })
const result = await plain.run('Go.').result
`

/** The first compiler error of each snippet, or null. */
const snippets: [name: string, code: string, says: RegExp | null][] = [
  [
    'a zod 3 schema as input',
    `defineTool({ name: 'x', description: 'X.', input: z3.object({ a: z3.number() }), execute: ({ a }) => a })`,
    /not assignable to type '"This input has no JSON Schema\. Use zod 4\.2 or later \(zod 3 cannot\)/,
  ],
  [
    'parameters in place of input',
    `defineTool({ name: 'x', description: 'X.', parameters: z.object({ a: z.number() }), execute: ({ a }) => a })`,
    /not assignable to type '"use input instead of 'parameters': a zod schema, or a plain JSON Schema"'/,
  ],
  [
    'neither execute nor client',
    `defineTool({ name: 'x', description: 'X.', input: z.object({}) })`,
    /not assignable to type '"add execute: \(input\) => …, or client: true when the run's caller executes it"'/,
  ],
  [
    'an option that is mistyped',
    `defineTool({ name: 'x', description: 'X.', input: z.object({}), readonly: true, execute: () => 1 })`,
    /not assignable to type '"there is no option 'readonly'"'/,
  ],
  [
    'an error without looking at the state',
    `console.log(result.error.message)`,
    /'result\.error' is possibly 'undefined'/,
  ],
  ['the error in ERROR', `if (result.state === 'ERROR') console.log(result.error.message)`, null],
  ['the error of a limit', `if (result.state === 'MAX_STEPS') console.log(result.error.message)`, null],
  [
    'pending without looking at the state',
    `for (const call of result.pending) console.log(call)`,
    /undefined/,
  ],
  [
    'pending in WAITING_FOR_INPUT',
    `if (result.state === 'WAITING_FOR_INPUT') console.log(result.pending.length)`,
    null,
  ],
  [
    'a state that no result has',
    `if (result.state === 'RUNNING') console.log(1)`,
    /This comparison appears to be unintentional/,
  ],
  [
    'the object of an agent with an output schema',
    `const { object } = await createAgent({ model, output: z.object({ city: z.string() }) }).run('Go.').result
     export const city: string | undefined = object?.city`,
    null,
  ],
  ['the object of one without', `export const n: undefined = result.object`, null],
  [
    'a tool that there is not',
    `if (result.state === 'WAITING_FOR_INPUT') for (const call of result.pending) if (call.path === undefined && call.name === 'ad') console.log(1)`,
    /This comparison appears to be unintentional because the types '"add" \| "book"' and '"ad"' have no overlap/,
  ],
  [
    'an edit that fits: as the model gives it, before defaults',
    `const run = plain.run('Go.')
     for (const call of (await run.result).pending ?? []) if (call.name === 'book') run.approve(call, { day: '2026-05-01' })`,
    null,
  ],
  [
    'an edit that does not fit',
    `const run = plain.run('Go.')
     for (const call of (await run.result).pending ?? []) if (call.name === 'book') run.approve(call, { day: 5 })`,
    /Type 'number' is not assignable to type 'string'/,
  ],
  [
    'an edit by id alone, or of a sub-agent, is anything',
    `const run = plain.run('Go.')
     run.approve('call_1', { day: 5 })
     for (const call of (await run.result).pending ?? []) if (call.path) run.approve(call, { day: 5 })`,
    null,
  ],
  [
    'an edit from the event',
    `const run = plain.run('Go.')
     for await (const event of run) {
       if (event.type === 'approval_requested' && event.name === 'add') run.approve(event, { a: 1, b: '2' })
     }`,
    /Type 'string' is not assignable to type 'number'/,
  ],
  [
    'an event of a tool that there is not',
    `for await (const event of plain.run('Go.')) if (event.type === 'tool_progress' && event.name === 'ad') console.log(1)`,
    /no overlap/,
  ],
  [
    'a result that is ok is of a tool that there is',
    `for await (const event of plain.run('Go.')) {
       if (event.type === 'tool_result' && event.status === 'ok') { const name: 'add' | 'book' = event.name; console.log(name) }
     }`,
    null,
  ],
  [
    'any other may be of a name that the model made up',
    `for await (const event of plain.run('Go.')) {
       if (event.type === 'tool_result') { const name: 'add' | 'book' = event.name; console.log(name) }
     }`,
    /Type 'string' is not assignable/,
  ],
  ['no context where a tool wants one', `withDb.run('Go.')`, /Expected 2 arguments, but got 1/],
  [
    'options without the context',
    `withDb.run('Go.', { session: 's' })`,
    /Property 'context' is missing in type '\{ session: string; \}' but required in type '\{ context: \{ db: Db; \}; \}'/,
  ],
  [
    'another context',
    `withDb.run('Go.', { context: { db: 1 } })`,
    /Type 'number' is not assignable to type 'Db'/,
  ],
  ['the context', `withDb.run('Go.', { context: { db: { rows: [] } }, session: 's' })`, null],
  ['no context on resume', `withDb.resume('s')`, /Expected 2 arguments, but got 1/],
  ['a context where no tool wants one', `plain.run('Go.', { context: { user: 'Ann' } })`, null],
  [
    'a sub-agent wants what its tools want',
    `createAgent({ model, tools: [withDb.asTool({ name: 'look', description: 'Looks.' })] }).run('Go.')`,
    /Expected 2 arguments, but got 1/,
  ],
  [
    'any agent, run and result fit where they are named without parameters',
    `import type { Agent, AgentEvent, Run, RunResult } from 'statewright'
     export const agents: Agent[] = [plain, withDb, createAgent({ model, output: z.object({ city: z.string() }) })]
     export const runs: Run[] = [plain.run('Go.'), createAgent({ model, output: z.object({ city: z.string() }) }).run('Go.')]
     export const results: RunResult[] = [result]
     export const show = (event: AgentEvent) => event.type
     for await (const event of plain.run('Go.')) show(event)`,
    null,
  ],
  [
    'tools that are listed elsewhere, or come from a source',
    `import type { ToolSource, Tool } from 'statewright'
     declare const source: ToolSource
     declare const listed: Tool[]
     const run = createAgent({ model, tools: [add, source, ...listed] }).run('Go.')
     for (const call of (await run.result).pending ?? []) if (call.name === 'anything') run.approve(call, { day: 5 })`,
    null,
  ],
]

longDescribe('what the compiler says', () => {
  let errors: string[]

  beforeAll(async () => {
    const complaints = await compile(snippets.map(([, code]) => `${prelude}${code}\n`))
    errors = complaints.map(([first]) => first?.message ?? '')
  }, 120_000)

  it.each(snippets.map(([name, , says], index) => ({ name, says, index })))('$name', ({ says, index }) => {
    if (says === null) expect(errors[index]).toBe('')
    else expect(errors[index]).toMatch(says)
  })
})
