import { encode } from 'gpt-tokenizer'
import { z } from 'zod'
import {
  createAgent,
  createSession,
  defineTool,
  openaiChat,
  restoreSession,
  secretsShield,
  type Tool,
  toolSearch,
} from '../../src/index.js'
import { createRecordedAgent, recordSession, replaySession } from '../../src/testing/index.js'
import { memoryStore } from '../../src/stores/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { manyTools } from '../support/many-tools.js'
import { again, latch, played, stage, textOf } from '../support/play.js'
import { call, calls, text } from '../support/tools.js'

/** A deferred tool for each listed name. It returns its arguments. */
function deferredTools(options: Record<string, unknown> = {}): Tool[] {
  return manyTools.map(({ name, description, parameters }) =>
    defer(name, { description, input: parameters, ...options }),
  )
}

function defer(name: string, options: Record<string, unknown> = {}): Tool {
  return defineTool({
    name,
    description: `The tool ${name}.`,
    input: { type: 'object', properties: { q: { type: 'string' } } },
    defer: true,
    execute: (input: unknown) => `${name} got ${JSON.stringify(input)}`,
    ...options,
  } as never) as Tool
}

interface Sent {
  tools: { function: { name: string } }[]
  messages: {
    role: string
    content?: unknown
    tool_calls?: { function: { name: string; arguments: string } }[]
  }[]
}
const namesIn = (sent: unknown): string[] => (sent as Sent).tools.map((tool) => tool.function.name)

const invoice = { workspace_id: 'w', invoice_id: 'i' }

test('with 178 tools, a first request uses at most a twentieth of the tokens', async () => {
  // OpenAI accepts at most 128 tools, so it would reject this request.
  const plain = await stage([text('Hi.')], { tools: deferredTools({ defer: false }) })
  await plain.run().run.result
  const tools = [...deferredTools(), toolSearch()]
  const deferred = await played([text('Hi.')], { tools, instructions: 'Be brief.' })
  const [all, few] = [plain, deferred.stage].map(
    ({ requests }) => encode(JSON.stringify(requests[0]?.sent)).length,
  )
  expect(all).toBeGreaterThan(60_000)
  expect(few).toBeLessThanOrEqual((all ?? 0) * 0.05)
  expect(namesIn(deferred.stage.requests[0]?.sent)).toEqual(['tool_search'])
  const [system] = deferred.stage.wire(0)
  expect(textOf(system)).toMatch(/^Be brief\.\n\nMore tools are available/)
  for (const { name } of manyTools) expect(textOf(system)).toContain(`- ${name}`)
})

test('found tools are loaded, reported in an event, and appended to the tools', async () => {
  const { result, stage, of } = await played(
    [
      call('tool_search', { query: 'cancel an invoice' }),
      call('billing_cancel_invoice', invoice),
      text('Cancelled.'),
    ],
    { tools: [...deferredTools(), toolSearch({ limit: 2 })] },
  )
  expect(result.output).toBe('Cancelled.')
  const [loaded] = of('tools_loaded')
  expect(loaded?.names[0]).toBe('billing_cancel_invoice')
  expect(loaded?.names).toHaveLength(2)
  expect(stage.requests.map(({ sent }) => namesIn(sent))).toEqual([
    ['tool_search'],
    ['tool_search', ...(loaded?.names ?? [])],
    ['tool_search', ...(loaded?.names ?? [])],
  ])
  expect(of('tool_result').map(({ name, status }) => [name, status])).toEqual([
    ['tool_search', 'ok'],
    ['billing_cancel_invoice', 'ok'],
  ])
  expect(of('tool_result')[1]?.content).toContain('"invoice_id":"i"')
})

test('a call of a tool that is not loaded returns its schema, loads it, and counts for no guard or cap', async () => {
  const turn = calls([
    ['billing_get_invoice', { id: 'i' }],
    ['billing_get_invoice', { id: 'i' }],
  ])
  const { result, stage, of } = await played([turn, call('billing_get_invoice', invoice), text('Read.')], {
    tools: [...deferredTools({ maxCalls: 1 }), toolSearch()],
    limits: { maxToolCalls: 1 },
    guardrails: { repeatedCall: { haltAt: 'reached' } },
  })
  expect([result.state, result.output]).toEqual(['COMPLETED', 'Read.'])
  expect(of('tool_result').map(({ status }) => status)).toEqual(['not_loaded', 'not_loaded', 'ok'])
  expect(of('tool_result')[0]?.content).toContain('"invoice_id":{"type":"string"')
  expect(of('tools_loaded').map(({ names }) => names)).toEqual([['billing_get_invoice']])
  expect(of('guardrail')).toEqual([])
  expect(namesIn(stage.requests[1]?.sent)).toEqual(['tool_search', 'billing_get_invoice'])
})

test.each(['append', 'dispatch'] as const)(
  'loaded tools stay loaded in the session, after a resume, in a fork and in another process (%s)',
  async (loading) => {
    const store = memoryStore()
    const create = () => ({
      store,
      tools: [defer('one'), defer('two'), toolSearch({ loading, search: (query) => [query] })],
    })
    const through = (name: string): Turn =>
      loading === 'append' ? call(name, { q: 'x' }) : call('call_tool', { name, arguments: { q: 'x' } })
    const theatre = await stage(
      [
        call('tool_search', { query: 'two' }),
        text('Loaded.'),
        through('two'),
        text('A.'),
        through('two'),
        text('B.'),
        through('two'),
        text('C.'),
      ],
      create(),
    )
    await theatre.run('Load.', { session: 's' }).run.result
    await theatre.run('Use.', { session: 's' }).run.result
    const fork = await theatre.agent.fork('s')
    const other = again(theatre, create())
    await other.run('Use.', { session: 's' }).result
    await other.run('Use.', { session: fork }).result
    const results = async (id: string) =>
      (await other.replay(id)).messages
        .flatMap((message) => (message.role === 'tool' ? [message.content] : []))
        .slice(1)
    expect(await results('s')).toEqual(Array.from({ length: 2 }, () => 'two got {"q":"x"}'))
    expect(await results(fork)).toEqual(Array.from({ length: 2 }, () => 'two got {"q":"x"}'))
    const offered = theatre.requests.slice(1).map(({ sent }) => namesIn(sent).join())
    expect(new Set(offered)).toEqual(
      new Set([loading === 'append' ? 'tool_search,two' : 'tool_search,call_tool']),
    )
  },
)

test('a session stored as JSON keeps its loaded tools', async () => {
  const theatre = await stage([call('two'), text('Loaded.'), call('two'), text('Used.')], {
    tools: [defer('two'), toolSearch({ search: () => [] })],
  })
  const session = createSession()
  await theatre.run('Load.', { session }).run.result
  const restored = restoreSession(JSON.parse(JSON.stringify(session)) as object)
  const play = theatre.run('Use.', { session: restored })
  await play.run.result
  expect(play.of('tool_result').map(({ status }) => status)).toEqual(['ok'])
})

test('with call_tool, only the model does not see a call of the tool itself', async () => {
  const store = memoryStore()
  const seen: string[] = []
  const tools = [
    defer('pay', { needsApproval: true }),
    defer('look', { readOnly: true }),
    toolSearch({ loading: 'dispatch', search: () => ['pay', 'look'] }),
  ]
  const shield = {
    ...secretsShield(),
    name: 'watch',
    check: (content: string, { toolName }: { toolName?: string }) => {
      seen.push(`${toolName} ${content}`)
      return { action: 'allow' as const }
    },
  }
  const theatre = await stage(
    [
      call('tool_search', { query: 'pay' }),
      calls([
        ['call_tool', { name: 'pay', arguments: { q: '1' } }],
        ['call_tool', { name: 'look', arguments: '{"q":"2"}' }],
      ]),
      text('Paid.'),
    ],
    { store, tools, shields: { toolInput: [shield as never] } },
  )
  const play = theatre.run('Pay.', { session: 's' })
  const waiting = await play.rest()
  expect(waiting.pending?.map(({ name, arguments: text }) => [name, text])).toEqual([['pay', '{"q":"1"}']])
  expect(play.of('approval_requested').map(({ name }) => name)).toEqual(['pay'])
  const approved = again(theatre, { store, tools, shields: { toolInput: [shield as never] } })
  const run = await approved.resume('s')
  run.approve(waiting.pending?.[0]?.callId ?? '')
  expect((await run.result).output).toBe('Paid.')
  expect(seen.slice(1)).toEqual(['pay {"q":"1"}', 'look {"q":"2"}'])
  expect(play.of('tool_call').map(({ call: { function: fn } }) => fn.name)).toEqual([
    'tool_search',
    'pay',
    'look',
  ])
  expect(
    play.of('step_started').flatMap((step) => (step.stepType === 'tool_execution' ? [step.name] : [])),
  ).toEqual(['tool_search', 'look'])
  const sent = theatre.requests.at(-1)?.sent as Sent
  const wired = sent.messages.flatMap(({ tool_calls: calls = [] }) =>
    calls.map(({ function: fn }) => [fn.name, fn.arguments]),
  )
  expect(wired.slice(1)).toEqual([
    ['call_tool', '{"name":"pay","arguments":{"q":"1"}}'],
    ['call_tool', '{"name":"look","arguments":{"q":"2"}}'],
  ])
  expect(textOf(sent.messages.find(({ role }) => role === 'tool'))).toContain('"parameters":{"type":"object"')
})

test('redacted content of a call through call_tool appears in no request, event or record', async () => {
  const store = memoryStore()
  const secret = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH'
  const through = (q: string): Turn => call('call_tool', { name: 'look', arguments: { q } })
  for (const action of ['redact', 'block'] as const) {
    const theatre = await stage([through('x'), through(secret), text('Done.')], {
      store,
      tools: [defer('look'), toolSearch({ loading: 'dispatch', search: () => [] })],
      shields: { toolInput: [secretsShield({ action } as never)] },
    })
    const play = theatre.run('Go.', { session: action })
    expect((await play.run.result).output).toBe('Done.')
    expect(play.of('tool_result')[1]?.status).toBe(action === 'redact' ? 'ok' : 'blocked')
    const [, , last] = theatre.requests
    expect(JSON.stringify(last?.sent)).toContain('call_tool')
    expect(JSON.stringify(last?.sent)).not.toContain(secret)
    expect(JSON.stringify(play.events)).not.toContain(secret)
  }
})

test('a call of call_tool without a tool returns the problem, and the run continues', async () => {
  const { of, result } = await played(
    [
      call('call_tool', { arguments: {} }),
      call('call_tool', { name: 'call_tool', arguments: {} }),
      call('call_tool', { name: 'nothing', arguments: {} }),
      call('call_tool', '{"name":'),
      call('call_tool', { name: 'two', arguments: {} }),
      call('call_tool', { name: 'two', arguments: { q: 'x' } }),
      text('Done.'),
    ],
    { tools: [defer('two'), toolSearch({ loading: 'dispatch', search: () => [] })] },
  )
  expect(result.output).toBe('Done.')
  expect(of('tool_result').map(({ name, status }) => [name, status])).toEqual([
    ['call_tool', 'invalid_arguments'],
    ['call_tool', 'error'],
    ['nothing', 'unknown_tool'],
    ['call_tool', 'invalid_arguments'],
    ['two', 'not_loaded'],
    ['two', 'ok'],
  ])
})

test('arguments of call_tool arrive complete, and arguments of other calls are streamed', async () => {
  const { of } = await played(
    [call('look', { q: 'x' }), call('call_tool', { name: 'look', arguments: { q: 'x' } }), text('Done.')],
    { stream: true, tools: [defer('look'), toolSearch({ loading: 'dispatch', search: () => [] })] },
  )
  const streamed = of('tool_call_delta').map(({ name }) => name)
  expect(new Set(streamed)).toEqual(new Set(['look']))
  expect(of('tool_call').map(({ call: { function: fn } }) => [fn.name, fn.arguments])).toEqual([
    ['look', '{"q":"x"}'],
    ['look', '{"q":"x"}'],
  ])
})

test.each(['append', 'dispatch'] as const)(
  'fitting the window unloads no tool: a search returns the schemas again (%s)',
  async (loading) => {
    const through = (name: string): Turn =>
      loading === 'append' ? call(name, { q: 'x' }) : call('call_tool', { name, arguments: { q: 'x' } })
    const find = call('tool_search', { query: 'long' })
    const { of, result, stage } = await played(
      [find, ...Array.from({ length: 4 }, () => through('long')), find, through('long'), text('Done.')],
      {
        tools: [
          defer('long', { execute: () => 'many words '.repeat(100) }),
          toolSearch({ loading, search: () => ['long'] }),
        ],
        context: { window: 1_200, strategy: 'sliding_window' },
        guardrails: { progress: null },
      },
    )
    expect(result.output).toBe('Done.')
    expect(of('context_fitted').length).toBeGreaterThan(0)
    expect(of('tools_loaded')).toHaveLength(1)
    expect(of('tool_result').map(({ status }) => status)).toEqual(Array.from({ length: 7 }, () => 'ok'))
    const searches = of('tool_result').filter(({ name }) => name === 'tool_search')
    expect(searches[1]?.content).toBe(searches[0]?.content)
    const offered = loading === 'append' ? ['tool_search', 'long'] : ['tool_search', 'call_tool']
    expect(namesIn(stage.requests.at(-1)?.sent)).toEqual(offered)
  },
)

test('client tools and tools that need an approval are loaded before anyone is asked', async () => {
  const client = defineTool({
    name: 'pick',
    description: 'Lets the user pick.',
    input: { type: 'object' },
    client: true,
    defer: true,
  }) as Tool
  const tools = [client, defer('pay', { needsApproval: true }), toolSearch({ search: () => [] })]
  const theatre = await stage(
    [calls([['pick'], ['pay', { q: '1' }]]), calls([['pick'], ['pay', { q: '1' }]]), text('Done.')],
    { tools },
  )
  const play = theatre.run()
  const waiting = await play.rest()
  expect(play.of('tool_result').map(({ name, status }) => [name, status])).toEqual([
    ['pick', 'not_loaded'],
    ['pay', 'not_loaded'],
  ])
  expect(waiting.pending?.map(({ name, needs }) => [name, needs])).toEqual([
    ['pick', 'client'],
    ['pay', 'approval'],
  ])
})

test('a replay does not repeat a call that only loaded its tool, and keeps the order of its tools', async () => {
  const tools = [toolSearch({ search: () => [] }), defer('pay', { needsApproval: true })]
  const theatre = await stage([call('pay'), call('pay'), text('Done.')], { tools, store: memoryStore() })
  const { run } = theatre.run('Go.', { session: 's' })
  const [question] = (await run.result).pending ?? []
  if (question) run.approve(question)
  expect((await run.result).state).toBe('COMPLETED')
  const recording = await recordSession(theatre.agent, 's')
  for (const agent of [theatre.agent, createRecordedAgent(recording)])
    expect((await replaySession(agent, recording)).state).toBe('COMPLETED')
})

test('a cancelled search loads nothing', async () => {
  const searching = latch()
  const theatre = await stage([call('tool_search', { query: 'x' })], {
    tools: [
      defer('two'),
      toolSearch({
        search: async () => {
          searching.open()
          await new Promise<void>(() => undefined)
          return ['two']
        },
      }),
    ],
  })
  const play = theatre.run()
  await searching.opened
  play.run.cancel()
  expect((await play.run.result).state).toBe('CANCELLED')
  expect(play.of('tools_loaded')).toEqual([])
})

test('a custom search that does not return names is reported to the model as a failure', async () => {
  const { of, result } = await played([call('tool_search', { query: 'x' }), text('Without, then.')], {
    tools: [defer('two'), toolSearch({ search: (() => 'two') as never })],
  })
  expect(result.output).toBe('Without, then.')
  expect(of('tool_result')[0]).toMatchObject({
    status: 'error',
    content: expect.stringContaining('must return a list of tool names'),
  })
})

test('results are truncated between schemas', async () => {
  const { of } = await played([call('tool_search', { query: 'invoice' }), text('Ok.')], {
    tools: [...deferredTools(), toolSearch({ loading: 'dispatch', limit: 20 })],
    toolCalls: { maxResultChars: 5_000 },
  })
  const [result] = of('tool_result')
  const [, ...lines] = result?.content.split('\n') ?? []
  expect(result?.truncated).toBeUndefined()
  expect(lines.length).toBeGreaterThan(1)
  expect(lines.map((line) => (JSON.parse(line) as { name: string }).name)).toEqual(
    of('tools_loaded')[0]?.names,
  )
})

test.each(['append', 'dispatch'] as const)(
  'an output tool is never deferred, and tools are loaded after it (%s)',
  async (loading) => {
    const { result, stage } = await played(
      [call('tool_search', { query: 'answer' }), call('answer_2', { done: true })],
      {
        tools: [defer('answer'), toolSearch({ loading, search: () => ['answer'] })],
        output: { name: 'answer', schema: z.object({ done: z.boolean() }), mode: 'tool' },
      },
    )
    expect(result.object).toEqual({ done: true })
    const offered = stage.requests.map(({ sent }) => namesIn(sent).filter((name) => name !== 'call_tool'))
    expect(offered).toEqual([
      ['tool_search', 'answer_2'],
      ['tool_search', 'answer_2', ...(loading === 'append' ? ['answer'] : [])],
    ])
  },
)

test('two searches at once, and a search with a call of its result, work in one answer', async () => {
  const theatre = await stage(
    [
      calls([
        ['tool_search', { query: 'two' }],
        ['tool_search', { query: 'two' }],
        ['two', { q: '1' }],
      ]),
      call('two'),
      text('Done.'),
    ],
    { store: memoryStore(), tools: [defer('two'), toolSearch({ search: (q) => [q, 'two', 'ghost'] })] },
  )
  const play = theatre.run('Go.', { session: 's' })
  expect((await play.run.result).output).toBe('Done.')
  expect(play.of('tools_loaded').map(({ names }) => names)).toEqual([['two']])
  expect(
    play
      .of('tool_result')
      .map(({ status }) => status)
      .sort(),
  ).toEqual(['not_loaded', 'ok', 'ok', 'ok'])
})

test('the resuming process may have no or different deferred tools', async () => {
  const store = memoryStore()
  const theatre = await stage([call('two'), text('A.'), call('two'), text('B.'), call('two'), text('C.')], {
    store,
    tools: [defer('two'), toolSearch({ search: () => [] })],
  })
  await theatre.run('Go.', { session: 's' }).run.result
  const plain = again(theatre, { store, tools: [{ ...defer('two'), defer: undefined } as never] })
  expect((await plain.run('Go.', { session: 's' }).result).output).toBe('B.')
  const none = again(theatre, { store, tools: [defer('three'), toolSearch({ search: () => [] })] })
  expect((await none.run('Go.', { session: 's' }).result).output).toBe('C.')
  expect(theatre.requests.map(({ sent }) => namesIn(sent).join())).toEqual([
    'tool_search',
    'tool_search,two',
    'two',
    'two',
    'tool_search',
    'tool_search',
  ])
})

test('names of object members work as tool names', async () => {
  const theatre = await stage(
    [call('constructor'), call('tool_search', { query: 'toString' }), text('Done.')],
    { tools: [defer('toString'), defer('constructor'), toolSearch()] },
  )
  const play = theatre.run()
  expect((await play.run.result).output).toBe('Done.')
  expect(play.of('tools_loaded').map(({ names }) => names)).toEqual([['constructor'], ['toString']])
})

test('deferred tools of a sub-agent are loaded in its own session', async () => {
  const theatre = await stage(
    [
      call('research', { task: 'Look.' }),
      call('two', { q: 'x' }),
      call('two', { q: 'x' }),
      text('Found.'),
      text('Done.'),
    ],
    {},
  )
  const below = createAgent({
    model: openaiChat({ model: 'gpt-test', baseURL: theatre.rehearsal.url, apiKey: 'none' }),
    tools: [defer('two'), toolSearch({ search: () => [] })],
  })
  const lead = again(theatre, {
    tools: [below.asTool({ name: 'research', description: 'Looks things up.' })],
  })
  const run = lead.run('Go.')
  const { output } = await run.result
  expect(output).toBe('Done.')
  expect(theatre.requests.map(({ sent }) => namesIn(sent))).toEqual([
    ['research'],
    ['tool_search'],
    ['tool_search', 'two'],
    ['tool_search', 'two'],
    ['research'],
  ])
})

test.each([
  [
    { tools: [defer('two')] },
    "Tool 'two' is deferred (defer: true), but there is no search. Add toolSearch() to tools",
  ],
  [{ tools: [toolSearch(), { ...toolSearch(), name: 'find' }] }, 'Keep one toolSearch().'],
])('tools that cannot be found are refused (%#)', ({ tools }, message) => {
  expect(() =>
    createAgent({ model: openaiChat({ model: 'm', apiKey: 'k' }), tools: tools as Tool[] }),
  ).toThrow(message)
})

test.each([
  [{ limit: 0 }, 'toolSearch: limit must be a whole number from 1 to 20 (got 0).'],
  [{ loading: 'later' }, "toolSearch: loading must be 'append' or 'dispatch' (got 'later')."],
  [{ search: 'bm25' }, 'toolSearch: search must be a function'],
  [{ max: 5 }, "toolSearch has no option 'max'. The options are limit, loading, search, hosted."],
  [null, 'toolSearch(options) must be an options object'],
])('invalid options of toolSearch are refused (%#)', (options, message) => {
  expect(() => toolSearch(options as never)).toThrow(message)
})
