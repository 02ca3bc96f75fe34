import { createRequestListener } from '@remix-run/node-fetch-server'
import { createAgent, defineAgents, defineTool, memoryStore } from '../../src/index.js'
import { mcpServer } from '../../src/mcp/server/index.js'
import { played, stage } from '../support/play.js'
import { call, text } from '../support/tools.js'
import { startServer } from './http-server.js'
import { lastResult, scriptedModel } from './server/support.js'
import { failureOf, open, reference, use } from './support.js'
import { taskForms, taskServer } from './task-server.js'
import { longTest, sampledKinds } from '../support/extent.js'

describe.each(sampledKinds(taskForms))('a call that becomes a task, by the %s', (form) => {
  it('is polled until it has its result, and its handle is stored first', async () => {
    const { url, keys, tasks } = await taskServer(form)
    const handles: unknown[] = []
    const received: unknown[] = []
    const keepHandle = (handle: unknown): Promise<void> => {
      handles.push([handle, tasks.get('task-1')?.polls])
      return Promise.resolve()
    }
    const server = await open({ url })
    const answer = await use(server, 'web_go', {}, { keepHandle, progress: (value) => received.push(value) })
    expect(answer).toBe('The answer of task-1.')
    expect(handles).toEqual([[{ task: 'task-1' }, 0]])
    expect(keys).toEqual(['key'])
    expect(received).toEqual([
      { status: 'working', message: 'Question 0.' },
      { status: 'working', message: 'Question 1.' },
      { status: 'completed', message: 'Question 2.' },
    ])
  })

  it('continues from its handle, and is not made again', async () => {
    const { url, keys, tasks } = await taskServer(form)
    tasks.set('before', { polls: 0, answers: [] })
    const answer = await use(await open({ url }), 'web_go', {}, { handle: { task: 'before' } })
    expect([answer, keys]).toEqual(['The answer of before.', []])
  })

  it('is cancelled with its call, but not when another process continues', async () => {
    const { url, cancelled } = await taskServer(form, { polls: Infinity })
    const server = await open({ url })
    const stop = async (reason: DOMException): Promise<void> => {
      const controller = new AbortController()
      const progress = (): void => controller.abort(reason)
      await expect(use(server, 'web_go', {}, { signal: controller.signal, progress })).rejects.toBe(reason)
    }
    await stop(new DOMException('Another process goes on.', 'LeftError'))
    await stop(new DOMException('Cancelled.', 'AbortError'))
    await server.close()
    expect(cancelled).toEqual(['task-2'])
  })

  it.each([
    [
      'its ttl, and is cancelled',
      { polls: Infinity, ttl: 900 },
      {},
      /did not finish its task within the ttl of 900 ms/,
    ],
    [
      'timeoutMs without progress, and is cancelled',
      { polls: Infinity, silent: true },
      { timeoutMs: 900 },
      /reported no progress for 900 ms/,
    ],
    [
      'timeoutMs without progress, even if its ttl is longer',
      { polls: Infinity, silent: true, ttl: 60_000 },
      { timeoutMs: 900 },
      /reported no progress for 900 ms/,
    ],
  ])('ends by %s', async (_, task, options, words) => {
    const { url, cancelled } = await taskServer(form, task)
    const server = await open({ url, ...options })
    const failure = await failureOf(use(server, 'web_go'))
    expect(failure).toMatchObject({ kind: 'transient', message: expect.stringMatching(words) as string })
    expect(failure.message).toMatch(/It may still have taken effect/)
    await server.close()
    expect(cancelled).toEqual(['task-1'])
  })

  it('may take longer than timeoutMs while it reports progress', async () => {
    const { url } = await taskServer(form, { polls: 25 })
    expect(await use(await open({ url, timeoutMs: 1_000 }), 'web_go')).toBe('The answer of task-1.')
  })

  it('is polled again after the server was unreachable', async () => {
    const { url, keys, hooks } = await taskServer(form)
    const server = await open({ url })
    hooks.away = 1
    expect(await use(server, 'web_go')).toBe('The answer of task-1.')
    expect(keys).toHaveLength(1)
  })

  it('fails with its task, and reports a possible effect', async () => {
    const { url, keys, hooks } = await taskServer(form)
    const server = await open({ url })
    hooks.end = 'cancelled'
    expect(await failureOf(use(server, 'web_go'))).toMatchObject({
      kind: 'failed',
      message: "The MCP server 'web' has cancelled the task.",
    })
    const lost = await failureOf(use(server, 'web_go', {}, { handle: { task: 'of another server' } }))
    expect(lost).toMatchObject({ kind: 'failed' })
    expect(lost.message).toMatch(/There is no such task\. It may still have taken effect/)
    expect(keys).toHaveLength(1)
  })
})

it('a failed task of the extension reports the reason', async () => {
  const { url, hooks } = await taskServer('extension')
  hooks.end = 'failed'
  const failure = await failureOf(use(await open({ url }), 'web_go'))
  expect(failure.message).toBe(`The MCP server 'web': the task failed. "Out of paper."`)
})

it('a task of the extension receives its answer even after the server was unreachable', async () => {
  const { url, hooks, tasks } = await taskServer('extension')
  hooks.asks = { message: 'Seat?', requestedSchema: { type: 'object', properties: {} } }
  const turns = [call('web_go', {}), text('Done.')]
  const theatre = await stage(turns, { tools: [await open({ url })] })
  const play = theatre.run()
  const [question] = (await play.rest()).pending ?? []
  const answer = { action: 'accept', content: {} }
  hooks.away = 1
  play.run.addToolOutput(question?.callId ?? '', answer)
  await play.end(2)
  expect(tasks.get('task-1')?.answers).toEqual([{ seat: answer }])
  expect(play.of('tool_result').map(({ content }) => content)).toEqual(['The answer of task-1.'])
})

describe('a task that refuses an answer', () => {
  const answer = { action: 'accept', content: {} }

  async function askedBy(refuses: number, refusal?: string) {
    const created = await taskServer('extension')
    const asks = { message: 'Seat?', requestedSchema: { type: 'object', properties: {} } }
    Object.assign(created.hooks, { asks, refuses, refusal })
    const turns = [call('web_go', {}), text('Done.')]
    const theatre = await stage(turns, { tools: [await open({ url: created.url })] })
    const play = theatre.run()
    const questions: string[] = []
    let at = await play.rest()
    while (at.state === 'WAITING_FOR_INPUT') {
      const [question] = at.pending
      questions.push(question?.elicitation?.message ?? '')
      play.run.addToolOutput(question?.callId ?? '', answer)
      at = await play.run.result
    }
    const results = play.of('tool_result').map(({ content }) => content)
    return { questions, results, state: at.state, task: created.tasks.get('task-1') }
  }

  it('reports the reason, and asks the person again', async () => {
    const { questions, results } = await askedBy(1, 'There is no row 0.')
    expect(questions).toEqual([
      'Seat?',
      expect.stringMatching(/^\[The previous answer was refused: .*There is no row 0\..*\] Seat\?$/),
    ])
    expect(results).toEqual(['The answer of task-1.'])
  })

  it('is cancelled after ten refusals', async () => {
    const { questions, results, state, task } = await askedBy(Infinity, 'No.')
    expect([questions.length, state, task?.answers]).toEqual([10, 'COMPLETED', []])
    expect(results).toEqual([expect.stringContaining('asked a person more than 10 times')])
  })

  it('asks the person again after a while if it does not report the refusal', async () => {
    const { questions, results } = await askedBy(1)
    expect(questions).toEqual(['Seat?', 'Seat?'])
    expect(results).toEqual(['The answer of task-1.'])
  })
})

longTest(
  'the reference server of everything runs a tool that is a task',
  async () => {
    const everything = await open({ ...reference('everything'), name: 'all' })
    const turns = [call('all_simulate-research-query', { topic: 'tea' }), text('Done.')]
    const { result, of } = await played(turns, { tools: [everything] })
    expect(result.output).toBe('Done.')
    expect(of('tool_result').map(({ content }) => content)).toEqual([
      expect.stringContaining('# Research Report: tea'),
    ])
    const reports = of('tool_progress').map(({ progress }) => progress)
    expect(reports.at(-1)).toEqual({ status: 'completed', message: 'Generating report...' })
    // A slow poll can miss a stage.
    const stages = [
      'Gathering sources...',
      'Analyzing content...',
      'Synthesizing findings...',
      'Generating report...',
    ].map((message) => ({ status: 'working', message }))
    const seen = new Set(reports.slice(0, -1).map((report) => JSON.stringify(report)))
    expect(reports.slice(0, -1)).toEqual(stages.filter((stage) => seen.has(JSON.stringify(stage))))
    expect(seen.size).toBeGreaterThan(0)
  },
  30_000,
)

longTest(
  'a task of the older form asks a person in the middle',
  async () => {
    const everything = await open({ ...reference('everything'), name: 'all' })
    const turns = [call('all_simulate-research-query', { topic: 'python', ambiguous: true }), text('Done.')]
    const theatre = await stage(turns, { tools: [everything] })
    const play = theatre.run()
    const [question] = (await play.rest()).pending ?? []
    expect(question).toMatchObject({ needs: 'elicitation', elicitation: { mode: 'form', server: 'all' } })
    play.run.addToolOutput(question?.callId ?? '', { action: 'accept', content: { interpretation: 'snake' } })
    await play.end(2)
    expect(play.of('tool_result').map(({ content }) => content)).toEqual([
      expect.stringContaining('# Research Report: python (snake)'),
    ])
  },
  30_000,
)

describe('agents behind our own server', () => {
  /** The server, with an agent that pays after a person's approval. */
  async function office(): Promise<{ url: string; paid: string[] }> {
    const paid: string[] = []
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      needsApproval: true,
      execute: (_, { callId }) => `Paid: ${paid.push(callId)}.`,
    })
    const model = scriptedModel((request) => lastResult(request) ?? [{ name: 'pay', arguments: '{}' }])
    const clerk = createAgent({ model, tools: [pay], store: memoryStore() })
    const handler = mcpServer({ agents: defineAgents({ clerk }), authorize: 'none', pollMs: 50 })
    const { url } = await startServer(createRequestListener((request) => handler(request)))
    return { url, paid }
  }

  it('are called as tasks, which ask a person in one process and are answered from another', async () => {
    const { url, paid } = await office()
    const store = memoryStore()
    const turns = [call('office_clerk', { message: 'Pay.' }), text('Yes.')]
    const first = await stage(turns, { store, tools: [await open({ url, name: 'office' })] })
    const rest = await first.run('Go.', { session: 's' }).rest()
    expect(rest.pending).toMatchObject([{ needs: 'elicitation', elicitation: { mode: 'form' } }])
    expect(paid).toEqual([])
    const second = await stage([text('Yes.')], { store, tools: [await open({ url, name: 'office' })] })
    const run = await second.agent.resume(await first.agent.fork('s'))
    run.addToolOutput(rest.pending?.[0]?.callId ?? '', { action: 'accept', content: { confirm: true } })
    const { output, messages } = await run.result
    expect(output).toBe('Yes.')
    expect(messages.find(({ role }) => role === 'tool')?.content).toBe('Paid: 1.')
    expect(paid).toHaveLength(1)
  })
})
