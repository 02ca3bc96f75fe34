import { longDescribe } from '../support/extent.js'
import { compile } from './compile.js'

const prelude = `
import { jsonSchema, tool } from 'ai'
import { createAgent, defineTool, type ModelProvider } from 'statewright'
import { aiTools } from 'statewright/ai-sdk'
import type { InferUITools } from 'statewright/ui/client'
import * as z from 'zod'
declare const model: ModelProvider
const weather = tool({ description: 'W.', inputSchema: z.object({ city: z.string() }), execute: ({ city }) => city })
const find = tool({ description: 'F.', inputSchema: jsonSchema<{ text: string }>({ type: 'object' }), execute: ({ text }) => text })
const pick = tool({ description: 'P.', inputSchema: z.object({ seat: z.number() }) })
/** As in ai 7, whose tools say which context they want. */
const mine = {
  description: 'M.',
  inputSchema: z.object({}),
  execute: (_input: object, { context }: { context: { user: string } }) => context.user,
}
/** As in ai 7, whose tools that want none have a record of anything. */
const anyone = {
  description: 'A.',
  inputSchema: z.object({}),
  execute: (_input: object, { toolCallId }: { toolCallId: string; context: Record<string, unknown> }) => toolCallId,
}
const add = defineTool({ name: 'add', description: 'A.', input: z.object({ a: z.number() }), execute: ({ a }) => a })
const agent = createAgent({ model, tools: [...aiTools({ weather, find, pick }), add] })
const own = createAgent({ model, tools: aiTools({ mine, weather }) })
type Tools = InferUITools<typeof agent>
const free = createAgent({ model, tools: aiTools({ anyone, weather }) })
export const used = [own, free]
`

/** The first compiler error of each snippet, or null. */
const snippets: [name: string, code: string, says: RegExp | null][] = [
  [
    'the inputs of all of them',
    `export const inputs: [Tools['weather']['input'], Tools['find']['input'], Tools['pick']['input'], Tools['add']['input']] =
       [{ city: 'Lisbon' }, { text: 'x' }, { seat: 5 }, { a: 1 }]`,
    null,
  ],
  [
    'an input that is another',
    `export const input: Tools['weather']['input'] = { city: 5 }`,
    /'number' is not assignable to type 'string'/,
  ],
  ['a tool that there is not', `export type Other = Tools['wether']`, /'wether' does not exist/],
  ['no context where ai 6 knows of none', `agent.run('Go.')`, null],
  ['no context where a tool wants one', `own.run('Go.')`, /Expected 2 arguments, but got 1/],
  ['no context where ai 7 says that any will do', `free.run('Go.')`, null],
  ['the context', `own.run('Go.', { context: { user: 'ann' } })`, null],
]

longDescribe('the types of tools of the AI SDK', () => {
  let errors: string[]

  beforeAll(async () => {
    const complaints = await compile(snippets.map(([, code]) => `${prelude}${code}\n`))
    errors = complaints.map(([first]) => first?.message ?? '')
  }, 240_000)

  it.each(snippets.map(([name, , says], index) => ({ name, says, index })))('$name', ({ says, index }) => {
    if (says === null) expect(errors[index]).toBe('')
    else expect(errors[index]).toMatch(says)
  })
})
