import { readFileSync } from 'node:fs'
import { StatewrightError } from '../../src/core/base/errors.js'
import { aguiHandler } from '../../src/agui/index.js'
import { createAgent, memoryStore, ModelError, type Run } from '../../src/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { plainAnswer } from '../support/manual-model.js'
import { entries, root } from '../types/declarations.js'
import { sampledRows } from '../support/extent.js'

/** Typical mistakes of JavaScript users. */
const slips: Readonly<Record<string, readonly unknown[]>> = {
  nothing: [],
  null: [null],
  'a text': ['text'],
  'a number': [7],
  'a function': [() => 1],
  'a wrong object': [{ wrong: true }],
  'an empty list': [[]],
  'a list of strings': [['text']],
  'a promise that was not awaited': [Promise.resolve({})],
  'two nulls': [null, null],
  'two texts': ['text', 'text'],
  'an object and null': [{}, null],
  'arguments swapped': [{}, 'text'],
}

/** Excluded exports, with the reason. */
const exempt: Readonly<Record<string, string>> = {
  BlockedError: 'orThrow makes it',
  BudgetExceededError: 'orThrow makes it',
  CancelledError: 'orThrow makes it',
  GuardrailError: 'orThrow makes it',
  InvalidOutputError: 'orThrow makes it',
  MaxStepsError: 'orThrow makes it',
  NotFinishedError: 'orThrow makes it',
  ProviderError: 'orThrow makes it',
  RunError: 'orThrow makes it',
  TimedOutError: 'orThrow makes it',
  ModelError: 'an error that explains another one must not hide it',
  getCacheHitRate: 'it is a part of the machine, which throws nothing of its own',
  toSvg: 'it loads a peer that draws; what it takes is checked before',
  startInspector: 'it would listen on a port',
}

type Exported = [entry: string, name: string, of: (...args: unknown[]) => unknown, isClass: boolean]

const exported: Exported[] = []
for (const [entry, file] of Object.entries(entries)) {
  const all = (await import(root + file)) as Record<string, unknown>
  for (const [name, of] of Object.entries(all)) {
    if (typeof of === 'function')
      exported.push([entry, name, of as Exported[2], /^class\b/.test(Function.prototype.toString.call(of))])
  }
}

it('every entry point of the package is checked', () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, unknown>
  }
  const paths = Object.keys(exports).filter((path) => !path.endsWith('.json'))
  expect(paths.map((path) => `statewright${path.slice(1)}`).toSorted()).toEqual(
    Object.keys(entries).toSorted(),
  )
})

it('exempt exports exist', () => {
  const names = exported.map(([, name]) => name)
  expect(Object.keys(exempt).filter((name) => !names.includes(name))).toEqual([])
})

const callable = exported.filter(([, name]) => !Object.hasOwn(exempt, name))

it.each(callable)(
  '%s: %s accepts invalid input, or throws a typed error',
  async (_entry, _name, of, isClass) => {
    const callWith = (args: readonly unknown[]): unknown =>
      isClass ? Reflect.construct(of, args as unknown[]) : of(...args)
    expect(await listRaw(slips, callWith)).toEqual([])
  },
)

/** The mistakes that end in an unhelpful error. */
async function listRaw(
  slips: Readonly<Record<string, readonly unknown[]>>,
  act: (args: readonly unknown[]) => unknown,
): Promise<string[]> {
  const raw: string[] = []
  for (const [slip, args] of Object.entries(slips)) {
    try {
      await settle(act(args))
    } catch (error) {
      const isTyped =
        (error instanceof StatewrightError && error.message !== '') || error instanceof ModelError
      if (!isTyped) raw.push(`${slip}: ${String(error)}`)
    }
  }
  return raw
}

/** Awaits the call's answer: the result of a run, the first value of an iterator. */
async function settle(answer: unknown): Promise<void> {
  const { result, next } = (Object(await answer) ?? {}) as { result?: unknown; next?: () => Promise<unknown> }
  await result
  if (typeof next === 'function') await next.call(answer)
}

/** The same for methods. Their first argument is often a session or call id. */
const slipsOfMethods: typeof slips = {
  ...slips,
  'a session and null': ['s', null],
  'a session and a number': ['s', 7],
  'a session and a wrong object': ['s', { wrong: true }],
  'a session and a list': ['s', []],
  'a session and a field that is null': ['s', { from: null, type: null, branch: null }],
  'a session, an object and null': ['s', {}, null],
  'a session, a text and null': ['s', 'text', null],
  'a session, a text and a number': ['s', 'text', 7],
}

const model = { provider: 'p', model: 'm', request: () => Promise.resolve({ ...plainAnswer, text: 'Done.' }) }

async function makeAgent() {
  const agent = createAgent({ model, store: memoryStore() })
  await agent.run('Go.', { session: 's' }).result
  return agent
}

type Methods = Record<string, (...args: unknown[]) => unknown>

const methodsOfAgent = Object.entries(createAgent({ model })).flatMap(([name, method]) =>
  typeof method === 'function' ? [name] : [],
)

it.each(sampledRows(methodsOfAgent))(
  'agent.%s accepts invalid input, or throws a typed error',
  async (name) => {
    const act = async (args: readonly unknown[]): Promise<unknown> => {
      const agent = (await makeAgent()) as unknown as Methods
      return agent[name]?.(...args)
    }
    expect(await listRaw(slipsOfMethods, act)).toEqual([])
  },
)

const methodsOfRun = Object.getOwnPropertyNames(
  Object.getPrototypeOf(createAgent({ model }).run('Go.')) as object,
)

it.each(sampledRows(methodsOfRun.filter((name) => name !== 'constructor')))(
  'run.%s accepts invalid input, or throws a typed error',
  async (name) => {
    const act = async (args: readonly unknown[]): Promise<void> => {
      const run: Run = (await makeAgent()).run('Go.')
      const method = (run as unknown as Methods)[name]
      if (typeof method === 'function') await settle(method.apply(run, [...args]))
      await run.result
    }
    expect(await listRaw(slipsOfMethods, act)).toEqual([])
  },
)

it.each([
  ['chatHandler', chatHandler],
  ['aguiHandler', aguiHandler],
])('the handler of %s refuses values that are not a Request', async (_, serve) => {
  const handler = serve({ agent: await makeAgent(), authorize: 'none' }) as (request?: unknown) => unknown
  // As in Express and node:http.
  const ofServer = { method: 'POST', url: '/api/chat', headers: { 'content-type': 'application/json' } }
  for (const args of [...Object.values(slips), [ofServer]]) {
    await expect((async () => handler(...args))()).rejects.toMatchObject({
      code: 'invalid_argument',
      subject: 'handler(request)',
      message: expect.stringContaining('docs/express.md'),
    })
  }
})
