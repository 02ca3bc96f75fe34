import { z } from 'zod'
import {
  type AgentOptions,
  createAgent,
  defineTool,
  memoryStore,
  type ModelProvider,
  patternShield,
  type SessionStore,
  ToolError,
} from '../../../src/index.js'
import type { ApprovalPredicate } from '../../../src/core/tools/tool.js'
import { evaluate, readSessionCases } from '../../../src/testing/index.js'
import { answering, closeRehearsals } from './answering.js'

afterEach(closeRehearsals)

/** Tools that count their real executions. */
function createTools() {
  const done: string[] = []
  const tools = [
    defineTool({
      name: 'find_order',
      description: 'Finds an order.',
      input: z.object({ id: z.string(), deep: z.boolean().default(false) }),
      readOnly: true,
      execute: ({ id }) => {
        done.push(`find ${id}`)
        if (id === 'broken') throw new ToolError('transient', 'The database restarts.')
        return `Order ${id}: shipped (${done.length}).`
      },
    }),
    defineTool({
      name: 'pay_back',
      description: 'Pays an order back.',
      input: z.object({ id: z.string() }),
      needsApproval: true,
      execute: ({ id }) => {
        done.push(`pay ${id}`)
        return `Paid ${id} back.`
      },
    }),
  ]
  return { done, tools }
}

type Calls = { name: string; arguments: Record<string, unknown> }[]

/** A model that makes the calls in the user's message (`find 17, pay 17`), and then repeats the results. */
async function calling(rewrite: (calls: Calls) => Calls = (calls) => calls): Promise<ModelProvider> {
  const { model } = await answering((prompt, results, { body }) => {
    const named = Array.from(prompt.matchAll(/(find|pay) ([\w-]+)/g), ([, verb, id]) => ({
      name: verb === 'find' ? 'find_order' : 'pay_back',
      arguments: { id },
    }))
    const call = rewrite(named)[results]
    return call ? { toolCalls: [call] } : { text: `I have read: ${body.messages.at(-1)?.content as string}` }
  })
  return model
}

/** Production sessions, with all actions of users and approvers. */
async function createProduction(
  conversations: Record<string, string[]>,
  options: Partial<AgentOptions> = {},
) {
  const store = memoryStore()
  const { tools } = createTools()
  const agent = createAgent({ model: await calling(), tools, store, ...options })
  for (const [session, turns] of Object.entries(conversations)) {
    for (const turn of turns) {
      const run = agent.run(turn, { session, tags: { plan: session.startsWith('pro') ? 'pro' : 'free' } })
      let result = await run.result
      while (result.state === 'WAITING_FOR_INPUT') {
        for (const call of result.pending) {
          if (call.arguments.includes('refused')) run.reject(call, 'Not this one.')
          else run.approve(call)
        }
        result = await run.result
      }
    }
  }
  return store
}

async function replay(store: SessionStore, options: Partial<AgentOptions> = {}, which = {}) {
  const { done, tools } = createTools()
  const agent = createAgent({ model: await calling(), tools, ...options })
  const before = await snapshotStore(store)
  const cases = await readSessionCases(store, which)
  const report = await evaluate({ agent, cases, score: ({ output }, { expected }) => output === expected })
  expect(await snapshotStore(store)).toEqual(before)
  return { report, done, run: report.cases[0]?.runs[0] }
}

const snapshotStore = async (store: SessionStore) => {
  const listed = await store.list({ children: true })
  return Promise.all(listed.map(async ({ id }) => [id, await store.read(id)]))
}

describe('replay of stored sessions', () => {
  test('sends another agent the user messages and the recorded results of calls', async () => {
    const store = await createProduction({ 'pro-1': ['find 17', 'pay 17'], 'free-1': ['find 3, find 3'] })
    const { report, done } = await replay(store, { instructions: 'Be brief.' })
    // No tool has run. The answers are the recorded ones: "shipped (1)" and so on.
    expect(done).toEqual([])
    expect(report.cases.map(({ id, expected, runs }) => [id, expected, runs[0]?.output])).toEqual([
      ['free-1', 'I have read: Order 3: shipped (4).', 'I have read: Order 3: shipped (4).'],
      ['pro-1', 'I have read: Paid 17 back.', 'I have read: Paid 17 back.'],
    ])
    expect(report.summary.verdicts).toMatchObject({ passed: 2, diverged: 0 })
    expect(report.cases.flatMap(({ runs }) => runs.map(({ session, steps }) => [session, steps]))).toEqual([
      [null, 3],
      [null, 4],
    ])
  })

  test('runs an unrecorded call if its tool is readOnly', async () => {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const model = await calling((calls) => [...calls, { name: 'find_order', arguments: { id: '99' } }])
    const { done, run } = await replay(store, { model })
    expect(done).toEqual(['find 99'])
    expect(run).toMatchObject({
      verdict: 'failed',
      state: 'COMPLETED',
      output: 'I have read: Order 99: shipped (1).',
    })
  })

  test('ends a case at an unrecorded call that may change something, without running it', async () => {
    const store = await createProduction({ 'pro-1': ['find 17', 'find 18'] })
    let requestCount = 0
    const model = await calling((calls) => {
      requestCount += 1
      return [{ name: 'pay_back', arguments: { id: '17' } }, ...calls]
    })
    const { done, run, report } = await replay(store, { model })
    expect(done).toEqual([])
    expect(run).toMatchObject({
      verdict: 'diverged',
      score: null,
      scores: {},
      diverged: {
        tool: 'pay_back',
        arguments: '{"id":"17"}',
        why: expect.stringMatching(/no such call.*not readOnly/) as string,
      },
    })
    expect(report.summary).toMatchObject({ cases: 0, verdicts: { diverged: 1, failed: 0 } })
    // No request followed that call.
    expect(requestCount).toBe(1)
  })

  test('compares arguments as the tool parses them, in any order and with defaults', async () => {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const model = await calling(() => [{ name: 'find_order', arguments: { deep: false, id: '17' } }])
    const { done, run } = await replay(store, { model })
    expect({ done, verdict: run?.verdict }).toEqual({ done: [], verdict: 'passed' })
  })

  async function replayGuarded(needsApproval: ApprovalPredicate<{ id: string }>) {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const done: string[] = []
    const tools = [
      defineTool({
        name: 'find_order',
        description: 'Finds.',
        input: z.object({ id: z.string() }),
        readOnly: true,
        needsApproval,
        execute: ({ id }) => done.push(id),
      }),
    ]
    const model = await calling(() => [{ name: 'find_order', arguments: { id: '99' } }])
    const { run } = await replay(store, { model, tools })
    return { why: run?.diverged?.why, done }
  }

  test('runs no call that a person would have to approve, even if it is readOnly', async () => {
    const { why, done } = await replayGuarded(({ id }) => id === '99')
    expect(why).toMatch(/a person would have to approve it/)
    expect(done).toEqual([])
  })

  test('requires approval if a predicate is undecided, as in a run', async () => {
    const { why, done } = await replayGuarded(() => undefined as never)
    expect(why).toMatch(/a person would have to approve it/)
    expect(done).toEqual([])
  })

  test('runs no sub-agents and no clients', async () => {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const helper = createAgent({ model: await calling() })
    const input = { type: 'object' as const }
    const tools = [
      helper.asTool({ name: 'helper', description: 'Helps.' }),
      defineTool({ name: 'page', description: 'Asks the page.', input, client: true, readOnly: true }),
    ]
    const calls = { helper: { task: 'Go.' }, page: {} }
    for (const [name, args] of Object.entries(calls)) {
      const model = await calling(() => [{ name, arguments: args }])
      const { run } = await replay(store, { model, tools })
      expect(run?.diverged).toMatchObject({
        tool: name,
        why: expect.stringMatching(/sub-agents|client/) as string,
      })
    }
  })

  test('replays failures and refusals', async () => {
    const store = await createProduction({ 'pro-1': ['find broken'], 'pro-2': ['pay refused'] })
    const { done, report } = await replay(store)
    expect(done).toEqual([])
    const outputs = report.cases.map(({ runs }) => runs[0]?.output)
    expect(outputs[1]).toBe(
      "I have read: The tool 'find_order' failed, possibly temporarily: The database restarts.",
    )
    expect(outputs[0]).toMatch(/Not this one\./)
  })

  test('uses the last sessions, by tag, and none of an evaluation', async () => {
    const store = await createProduction({ 'pro-1': ['find 1'], 'free-1': ['find 2'], 'pro-2': ['find 3'] })
    const ids = async (which: object) => (await readSessionCases(store, which)).map(({ id }) => id)
    expect(await ids({})).toEqual(['pro-2', 'free-1', 'pro-1'])
    expect(await ids({ last: 1 })).toEqual(['pro-2'])
    expect(await ids({ tags: { plan: 'pro' } })).toEqual(['pro-2', 'pro-1'])
    const { tools } = createTools()
    const agent = createAgent({ model: await calling(), tools })
    const cases = await readSessionCases(store, { last: 2 })
    await evaluate({ agent, cases, store, id: 'again' })
    expect(store.list().map(({ id }) => id)).toContain('again.pro-2.1')
    expect(await ids({})).toEqual(['pro-2', 'free-1', 'pro-1'])
    // Marked steps, each with the conversation up to there.
    const answers = (id: string) =>
      store.read(id).flatMap(({ seq, data }) => (data.includes('xstate.done.actor.model') ? [seq] : []))
    const [session = ''] = await ids({})
    const [first = 0, last = 0] = [answers(session)[0], answers(session).at(-1)]
    store.setMark?.(session, first, { seq: first, mark: 'bad', note: 'Too early.', at: 1 })
    store.setMark?.(session, last, { seq: last, mark: 'good', note: '🚆'.repeat(150), at: 2 })
    const marked = await readSessionCases(store, { marked: true })
    expect(marked.map(({ id }) => id)).toEqual([`${session}@${first}`, `${session}@${last}`])
    expect(marked[0]?.expected).toBeUndefined()
    expect(marked[0]?.tags).toMatchObject({ mark: 'bad', note: 'Too early.' })
    expect(marked[0]?.recorded?.turns).toHaveLength(1)
    expect(marked[1]?.expected).toMatch(/^I have read: /)
    expect(marked[1]?.tags).toMatchObject({ mark: 'good' })
    const { cases: evaluated } = await evaluate({ agent, cases: marked })
    expect(evaluated.map(({ tags }) => tags?.['mark'])).toEqual(['bad', 'good'])
    await expect(readSessionCases(store, { last: 0 })).rejects.toMatchObject({ code: 'invalid_option' })
  })

  test('does not wait for a session that is active or was interrupted', async () => {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const { tools } = createTools()
    const { model } = await answering(() => new Promise(() => undefined))
    const busy = createAgent({ model, tools, store }).run('find 17', { session: 'pro-1' })
    await busy.started
    const [one] = await readSessionCases(store)
    expect(one?.recorded?.turns).toHaveLength(2)
    busy.cancel()
    await busy.result
  })

  test('is plain JSON, so that it can be stored as a file of cases', async () => {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const cases = await readSessionCases(store)
    expect(JSON.parse(JSON.stringify(cases))).toEqual(cases)
  })

  test('repeats no content that a shield has withheld', async () => {
    const shields = { input: [patternShield({ patterns: [/classified/], action: 'block' })] }
    const store = await createProduction({ 'pro-1': ['find 17', 'find 18, classified'] }, { shields })
    const [one] = await readSessionCases(store)
    expect(JSON.stringify(one)).not.toContain('classified')
    expect(one?.recorded?.turns).toHaveLength(1)
  })

  test('uses memory and shields of the new agent as usual, and measures nothing', async () => {
    const store = await createProduction({ 'pro-1': ['find 17'] })
    const requests: string[] = []
    let measured = 0
    const telemetry = {
      begin: () => {
        measured += 1
        throw new Error('It was measured.')
      },
    }
    const { run } = await replay(store, {
      memory: {
        retrieve: async (query) => {
          requests.push(query)
          return []
        },
      },
      shields: { output: [patternShield({ patterns: [/shipped/], action: 'redact', replacement: 'gone' })] },
      telemetry,
    })
    expect({ requests, measured }).toEqual({ requests: ['find 17'], measured: 0 })
    expect(run?.output).toMatch(/^I have read: Order 17: gone/)
  })

  test('restarts its sessions in a store if an evaluation is repeated', async () => {
    const production = await createProduction({ 'pro-1': ['find 17'] })
    const { tools, done } = createTools()
    const agent = createAgent({ model: await calling(), tools })
    const options = { agent, cases: await readSessionCases(production), store: memoryStore(), id: 'e' }
    const first = await evaluate(options)
    const second = await evaluate(options)
    expect(second.cases[0]?.runs[0]).toMatchObject({ verdict: 'passed', session: 'e.pro-1.1', steps: 2 })
    expect(first.cases[0]?.runs[0]?.output).toBe(second.cases[0]?.runs[0]?.output)
    expect(done).toEqual([])
  })
})
