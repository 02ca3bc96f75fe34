import {
  createAgent,
  defineTool,
  memoryStore,
  openaiChat,
  openaiResponses,
  toolSearch,
} from '../../src/index.js'
import {
  checkSessionLog,
  createRecordedAgent,
  recordSession,
  replaySession,
} from '../../src/testing/index.js'

// Written after the public types of the package `openai` (ToolSearchTool, ResponseToolSearchCall,
// ResponseToolSearchOutputItem).

const parameters = { type: 'object', properties: { town: { type: 'string' } }, required: ['town'] } as const

function createTools(ran: string[]) {
  const tool = (name: string, needsApproval = false) =>
    defineTool({
      name,
      description: `The ${name} of a town.`,
      input: parameters,
      defer: true,
      needsApproval,
      execute: ({ town }) => {
        ran.push(`${name} ${town as string}`)
        return `The ${name}.`
      },
    })
  const clock = defineTool({
    name: 'clock',
    description: 'The time.',
    input: { type: 'object' },
    execute: () => 'noon',
  })
  return [clock, tool('weather'), tool('mayor', true), toolSearch({ hosted: true })]
}

const wireTool = (name: string) => ({
  type: 'function',
  name,
  description: `The ${name} of a town.`,
  parameters,
})

/** An answer that searches and calls the found tool. */
const searching = (name: string, town: string) => [
  {
    type: 'tool_search_call',
    id: `tsc_${name}`,
    status: 'completed',
    execution: 'server',
    call_id: null,
    arguments: { paths: [name] },
  },
  {
    type: 'tool_search_output',
    id: `tso_${name}`,
    status: 'completed',
    execution: 'server',
    call_id: null,
    tools: [{ ...wireTool(name), defer_loading: true }],
  },
  {
    type: 'function_call',
    id: `fc_${name}`,
    call_id: `call_${name}`,
    name,
    namespace: name,
    arguments: JSON.stringify({ town }),
    status: 'completed',
  },
]
const saying = (text: string) => [
  {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  },
]

interface Body {
  input: { type?: string; name?: string; namespace?: string }[]
  tools: { type: string; name?: string; defer_loading?: true }[]
}

/** A provider that streams these answers and records its requests. */
function play(...answers: object[][]) {
  const bodies: Body[] = []
  const fetch = async (_url: unknown, init?: { body?: unknown }) => {
    const output = answers[bodies.length] ?? []
    bodies.push(JSON.parse(String(init?.body)) as Body)
    const response = { id: 'resp_1', object: 'response', model: 'gpt-5.4', status: 'completed', output }
    const events = [
      ...output.flatMap((item, output_index) => [
        { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } },
        { type: 'response.output_item.done', output_index, item },
      ]),
      {
        type: 'response.completed',
        response: { ...response, usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 } },
      },
    ]
    const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  }
  const model = openaiResponses({ model: 'gpt-5.4', apiKey: 'none', fetch: fetch as typeof globalThis.fetch })
  return { model, bodies }
}

const offered = ({ tools }: Body) =>
  tools.map(({ type, name, defer_loading }) => [name ?? type, defer_loading ?? false])
const always = [
  ['clock', false],
  ['weather', true],
  ['mayor', true],
  ['tool_search', false],
]

test('requests contain all tools, marked, and loaded tools are an event and are sent back to the provider', async () => {
  const ran: string[] = []
  const { model, bodies } = play(
    searching('weather', 'Rome'),
    searching('weather', 'Oslo'),
    saying('It rains.'),
  )
  const agent = createAgent({ model, tools: createTools(ran), instructions: 'Be brief.' })
  const loaded: unknown[] = []
  const run = agent.run('How is the weather?')
  run.events$.subscribe((event) => event.type === 'tools_loaded' && loaded.push(event.names))
  const { state, output, messages } = await run.result
  expect([state, output, ran]).toEqual(['COMPLETED', 'It rains.', ['weather Rome', 'weather Oslo']])
  expect(loaded).toEqual([['weather']])
  expect(bodies.map(offered)).toEqual([always, always, always])
  // Only our search uses the list of deferred tools.
  expect(JSON.stringify(bodies[0]?.input)).not.toContain('weather of a town')
  expect(bodies[1]?.input.map(({ type }) => type).filter(Boolean)).toEqual([
    'tool_search_call',
    'tool_search_output',
    'function_call',
    'function_call_output',
  ])
  expect(bodies[1]?.input.find(({ type }) => type === 'function_call')).toMatchObject({
    name: 'weather',
    namespace: 'weather',
  })
  expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
})

test('the loaded tools are the same after a resume in another process and in a fork, and a call waits for its approval', async () => {
  const ran: string[] = []
  const store = memoryStore()
  const first = play(searching('weather', 'Rome'), searching('mayor', 'Rome'))
  const rest = await createAgent({ model: first.model, tools: createTools(ran), store }).run('Who is it?', {
    session: 's',
  }).result
  expect([rest.state, rest.pending?.[0]?.name, ran]).toEqual(['WAITING_FOR_INPUT', 'mayor', ['weather Rome']])

  const second = play(saying('Ada.'), saying('Ada, too.'))
  const agent = createAgent({ model: second.model, tools: createTools(ran), store })
  const forked = await agent.fork('s', store.get('s')?.head ?? 0)
  for (const session of ['s', forked]) {
    const run = await agent.resume(session)
    run.approve('call_mayor')
    expect((await run.result).state).toBe('COMPLETED')
    const { snapshot } = await agent.replay(session)
    expect(snapshot?.context).toMatchObject({ loaded: ['weather', 'mayor'] })
  }
  expect(ran).toEqual(['weather Rome', 'mayor Rome', 'mayor Rome'])
  expect(second.bodies.map(offered)).toEqual([always, always])
  for (const { input } of second.bodies)
    expect(input.filter(({ type }) => type === 'tool_search_output')).toHaveLength(2)
})

test('the log conforms to the reference model, and its recording plays to the same end', async () => {
  const ran: string[] = []
  const store = memoryStore()
  const { model } = play(searching('weather', 'Rome'), saying('It rains.'))
  const agent = createAgent({ model, tools: createTools(ran), store })
  await agent.run('How is the weather?', { session: 's' }).result
  expect(checkSessionLog(store.read('s'))).toBeNull()
  expect(store.read('s').filter(({ data }) => data.includes('TOOLS_LOADED'))).toHaveLength(1)
  const recording = await recordSession(agent, 's')
  expect(await replaySession(agent, recording)).toMatchObject({ state: 'COMPLETED' })
  expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({ state: 'COMPLETED' })
  expect(ran).toEqual(['weather Rome'])
})

test('options of the local search, and models without a search, are refused by name', () => {
  expect(() => toolSearch({ hosted: true, limit: 3 })).toThrow(
    'limit has no effect with hosted: true, because the provider searches',
  )
  expect(() => toolSearch({ hosted: 'yes' } as never)).toThrow('hosted must be true or false')
  const { model } = play()
  const chat = openaiChat({ model: 'gpt-5-mini', apiKey: 'none' })
  const local = openaiResponses({ model: 'glm', baseURL: 'http://localhost:1234/v1', apiKey: 'none' })
  for (const items of [{ model: chat }, { model: local }, { model, models: { cheap: chat } }])
    expect(() => createAgent({ ...items, tools: createTools([]) })).toThrow(
      'toolSearch({ hosted: true }) needs a provider',
    )
  expect(() => createAgent({ model, models: { same: model }, tools: createTools([]) })).not.toThrow()
})
