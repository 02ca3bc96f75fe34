import { longDescribe } from '../support/extent.js'
import { compile } from './compile.js'

const prelude = `
import { createActor, createMachine } from 'xstate'
import { createAgent, createSessionRunner, defineAgents, defineTool, memoryStore, runSession, type ModelProvider, type ToolExecution } from 'statewright'
import { aguiHandler } from 'statewright/agui'
import { chatHandler } from 'statewright/ui'
import { dbosSessions, type DbosLike } from 'statewright/dbos'
import { restateSessions, type RestateLike } from 'statewright/restate'
import { startStudio } from 'statewright/studio'
import { evaluate } from 'statewright/testing'
import * as z from 'zod'
declare const model: ModelProvider
declare const DBOS: DbosLike
declare const restate: RestateLike
interface Db { rows: string[] }
interface Mail { send(text: string): void }
const add = defineTool({ name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), execute: ({ a }) => a })
const find = defineTool({
  name: 'find',
  description: 'Finds.',
  input: z.object({}),
  execute: (_input, { context }: ToolExecution<{ db: Db }>) => context.db.rows,
})
const send = defineTool({
  name: 'send',
  description: 'Sends.',
  input: z.object({}),
  execute: (_input, { context }: ToolExecution<{ mail: Mail }>) => context.mail.send(''),
})
const store = memoryStore()
const plain = createAgent({ model, store, tools: [add] })
const withDb = createAgent({ model, store, tools: [add, find] })
const withMail = createAgent({ model, store, tools: [send] })
const db: Db = { rows: [] }
const mail: Mail = { send: () => undefined }
const agents = defineAgents({ plain, withDb, mails: { agent: withMail, version: '2' } })
const plainAgents = defineAgents({ plain })
export const used = [createActor, createMachine, createSessionRunner, runSession, aguiHandler, chatHandler, dbosSessions, restateSessions, startStudio, evaluate]
export const values = [DBOS, restate, db, mail, agents, plainAgents]
const user = (request: Request) => request.headers.get('x-user') ?? ''
export { user }
`

const missing = /Property 'context' is missing|not assignable|Expected [23] arguments/

/** The first compiler error of each snippet, or null. */
const snippets: [name: string, code: string, says: RegExp | null][] = [
  ['runSession without it', `await runSession(withDb, { session: 's', input: 'Go.' })`, missing],
  [
    'runSession with another',
    `await runSession(withDb, { session: 's', context: { db: 5 } })`,
    /not assignable/,
  ],
  ['runSession with it', `await runSession(withDb, { session: 's', input: 'Go.', context: { db } })`, null],
  ['evaluate without it', `await evaluate({ agent: withDb, cases: [{ id: 'a', input: 'Go.' }] })`, missing],
  [
    'evaluate with it',
    `await evaluate({ agent: withDb, cases: [{ id: 'a', input: 'Go.' }], context: { db } })`,
    null,
  ],
  [
    'evaluate where no tool wants one',
    `await evaluate({ agent: plain, cases: [{ id: 'a', input: 'Go.' }] })`,
    null,
  ],
  ['runSession where no tool wants one', `await runSession(plain, { session: 's', input: 'Go.' })`, null],
  [
    'runSession where no tool wants one, with one',
    `await runSession(plain, { session: 's', context: { user: 'ann' } })`,
    null,
  ],
  [
    'runSession of several agents with what one of them wants',
    `await runSession(agents, { session: 's', context: { db } })`,
    missing,
  ],
  [
    'runSession of several agents with what all of them want',
    `await runSession(agents, { session: 's', context: { db, mail } })`,
    null,
  ],
  ['a session runner without it', `await createSessionRunner(withDb).runSession({ session: 's' })`, missing],
  [
    'a session runner with it',
    `await createSessionRunner(agents).runSession({ session: 's', context: { db, mail } })`,
    null,
  ],
  ['createActor with a text', `createActor(withDb.machine, { input: 'Go.' })`, missing],
  ['createActor without an input', `createActor(withDb.machine)`, missing],
  [
    'createActor with what createInput returned',
    `createActor(withDb.machine, { input: withDb.createInput('Go.', { context: { db } }) }).start()`,
    null,
  ],
  ['createInput without it', `withDb.createInput('Go.')`, missing],
  [
    'createActor where no tool wants one',
    `createActor(plain.machine, { input: 'Go.' }).start(); createActor(plain.machine, { snapshot: {} as never })`,
    null,
  ],
  [
    'chatHandler with a prefix alone',
    `chatHandler({ agent: withDb, authorize: (request) => user(request) })`,
    missing,
  ],
  ['chatHandler for everybody', `chatHandler({ agent: withDb, authorize: 'none' })`, missing],
  [
    'chatHandler with a grant that lacks it',
    `chatHandler({ agent: withDb, authorize: (request) => ({ prefix: user(request) }) })`,
    missing,
  ],
  [
    'chatHandler with it',
    `chatHandler({ agent: withDb, authorize: async (request) => user(request) ? { prefix: user(request), context: { db }, tags: { user: 'ann' } } : null })`,
    null,
  ],
  [
    'chatHandler where no tool wants one',
    `chatHandler({ agent: plain, authorize: user }); chatHandler({ agent: plain, authorize: 'none' })
     chatHandler({ agent: plain, authorize: (request) => ({ prefix: user(request), context: 5 }) })`,
    null,
  ],
  ['aguiHandler with a prefix alone', `aguiHandler({ agent: withDb, authorize: user })`, missing],
  [
    'aguiHandler with it',
    `aguiHandler({ agent: withDb, authorize: (request) => ({ prefix: user(request), context: { db } }) })`,
    null,
  ],
  ['startStudio without it', `await startStudio({ agent: withDb })`, missing],
  ['startStudio with it', `await startStudio({ agent: withDb, context: { db } })`, null],
  ['startStudio that only reads', `await startStudio({ store }); await startStudio({ agent: plain })`, null],
  ['dbosSessions without it', `dbosSessions(DBOS, agents, { drainMs: 5 })`, missing],
  ['dbosSessions without options', `dbosSessions(DBOS, agents)`, missing],
  [
    'dbosSessions with it',
    `dbosSessions(DBOS, agents, { context: (session) => ({ db, mail, session }), loadInput: async (session) => session })`,
    null,
  ],
  ['dbosSessions where no tool wants one', `dbosSessions(DBOS, plainAgents)`, null],
  ['restateSessions without it', `restateSessions(restate, agents)`, missing],
  [
    'restateSessions with what one agent wants',
    `restateSessions(restate, agents, { context: () => ({ db }) })`,
    /Property 'mail' is missing|not assignable/,
  ],
  [
    'restateSessions with it',
    `restateSessions(restate, agents, { context: async () => ({ db, mail }) })`,
    null,
  ],
]

longDescribe('where tools want a context, the compiler demands it', () => {
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
