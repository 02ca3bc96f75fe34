import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { type Attributes, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { OpenAI } from 'openai'
import {
  createAgent,
  defineShield,
  withFallbacks,
  memoryStore,
  ModelError,
  type ModelProvider,
  openaiChat,
  openaiResponses,
  type Tool,
} from '../../src/index.js'
import { noUsage, type Usage } from '../../machines/agent/usage.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import { namesBySemconv } from '../../src/otel/otel-metrics.js'
import { createRequestSpans } from '../../src/otel/request-spans.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import type { SyncSessionStore } from '../../src/core/sessions/store/store.js'
import { events, json, serve } from '../core/models/server.js'
import { again, latch, played, stage, tick, until } from '../support/play.js'
import { faults } from '../support/record-faults.js'
import { isFailed, Recorded, tokensOf, withContextManager } from '../support/spans.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'

withContextManager()

const usage = { input: 10, output: 5 }

const answer = {
  text: 'Hi.',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage: null,
  model: 'parrot-1',
}

const serverOf = ({ attributes }: { attributes: Attributes }) => [
  attributes['server.address'],
  attributes['server.port'],
]

function addressOf(url: string): [string, number] {
  const { hostname, port } = new URL(url)
  return [hostname, Number(port)]
}

describe('the spans of a run', () => {
  it('are a tree: the segment, its requests, its calls, and the spans of the tools', async () => {
    const recorded = new Recorded()
    const tracer = recorded.provider.getTracer('app')
    const look = tool('look', async () => {
      await tick()
      tracer.startSpan('GET example.com').end()
      return 'seen'
    })
    const { result } = await played([call('look', {}, { usage }), text('Done.', { usage })], {
      tools: [look],
      telemetry: recorded.otel({ agentName: 'analyst' }),
    })
    expect(recorded.tree).toEqual([
      {
        'invoke_agent analyst': [
          { 'chat gpt-test': [] },
          { 'execute_tool look': [{ 'GET example.com': [] }] },
          { 'chat gpt-test': [] },
        ],
      },
    ])
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
    expect(recorded.open).toBe(0)
    const [stretch] = recorded.named('invoke_agent')
    expect(stretch?.events.map(({ attributes }) => attributes?.['statewright.state.to'])).toEqual([
      'RUNNING',
      'COMPLETED',
    ])
    expect(stretch?.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'analyst',
      'gen_ai.conversation.id': result.sessionId,
      'gen_ai.request.model': 'gpt-test',
      'statewright.run.id': result.runId,
      'statewright.outcome.state': 'COMPLETED',
      'statewright.outcome.reason': 'end_turn',
      'statewright.steps': 2,
      'statewright.resumed': false,
      'statewright.usage.input_tokens': 20,
      'statewright.budget.steps.limit': 50,
      'statewright.budget.steps.used': 2,
    })
    expect(Object.keys(stretch?.attributes ?? {}).filter((key) => key.startsWith('gen_ai.usage'))).toEqual([])
    expect(recorded.named('chat').map(({ attributes }) => attributes)).toMatchObject([
      {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.stream': true,
        'gen_ai.response.model': 'gpt-test',
        'gen_ai.response.finish_reasons': ['tool_calls'],
        'gen_ai.usage.input_tokens': 10,
        'gen_ai.usage.output_tokens': 5,
        'statewright.step': 1,
        'statewright.attempt': 1,
        'statewright.accepted': true,
      },
      { 'statewright.step': 2, 'gen_ai.response.finish_reasons': ['stop'] },
    ])
    expect(recorded.named('execute_tool')[0]?.attributes).toMatchObject({
      'gen_ai.tool.name': 'look',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': 'call_1_1',
      'gen_ai.tool.description': 'The tool look.',
      'statewright.tool.status': 'ok',
    })
  })

  it('are children of the app’s span in which the run was started', async () => {
    const recorded = new Recorded()
    const app = await stage([text('Done.')], { telemetry: recorded.otel() })
    const tracer = recorded.provider.getTracer('app')
    await tracer.startActiveSpan('POST /chat', async (span) => {
      await app.run().run.result
      span.end()
    })
    expect(recorded.tree).toEqual([{ 'POST /chat': [{ invoke_agent: [{ 'chat gpt-test': [] }] }] }])
    expect(trace.getActiveSpan()).toBeUndefined()
  })

  it('are one per attempt, of which one is accepted', async () => {
    const recorded = new Recorded()
    const theatre = await stage(
      [
        { status: 503, error: { message: 'Too many people.' } },
        text('Half an answer.', { cutAfter: 1 }),
        text('Done.', { usage }),
      ],
      { telemetry: recorded.otel() },
    )
    const play = theatre.run().skipBackOff()
    const result = await play.run.result
    expect(result.state).toBe('COMPLETED')
    const chats = recorded.named('chat')
    expect(chats.map(({ attributes }) => attributes['statewright.attempt'])).toEqual([1, 2, 3])
    expect(chats.map(({ attributes }) => attributes['statewright.accepted'])).toEqual([false, false, true])
    expect(chats.map(isFailed)).toEqual([true, true, false])
    expect(chats[0]?.attributes['error.type']).toBe('server_error')
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
    expect(recorded.open).toBe(0)
  })

  it('keep the name from a span processor', async () => {
    const exporter = new InMemorySpanExporter()
    const done = () => Promise.resolve()
    const onStart = (span: Span): void => void span.updateName('renamed')
    const renaming = { onStart, onEnd: () => undefined, forceFlush: done, shutdown: done }
    const tracerProvider = new BasicTracerProvider({
      spanProcessors: [renaming, new SimpleSpanProcessor(exporter)],
    })
    const theatre = await stage([text('Hi.', { usage })])
    await again(theatre, { telemetry: new Recorded().otel({ tracerProvider }) }).run('Go.').result
    const chats = exporter.getFinishedSpans().filter(({ attributes }) => 'gen_ai.request.model' in attributes)
    expect(chats.map(({ name }) => name)).toContain('renamed')
    expect(chats.map(({ name }) => name)).not.toContain('chat gpt-test')
  })

  it('are one per requested model if one is abandoned for another', async () => {
    const recorded = new Recorded()
    const second = await stage([text('Done.', { usage })])
    const first = await stage([text('Half an answer.', { cutAfter: 1 })])
    const models = [first, second].map(({ rehearsal }, i) =>
      openaiChat({ model: `model-${i + 1}`, baseURL: rehearsal.url, apiKey: 'none' }),
    )
    const agent = again(first, { model: withFallbacks(models), telemetry: recorded.otel() })
    const result = await agent.run('Go.').result
    expect(result.state).toBe('COMPLETED')
    const chats = recorded.named('chat')
    expect(chats.map(({ name }) => name)).toEqual(['chat model-1', 'chat model-2'])
    expect(chats.map(({ attributes }) => attributes['statewright.accepted'])).toEqual([false, true])
    expect(chats[1]?.attributes).toMatchObject({ 'statewright.attempt': 1, 'statewright.fallback': 1 })
    expect(chats.map(serverOf)).toEqual([first, second].map(({ rehearsal }) => addressOf(rehearsal.url)))
    expect(chats[0]?.attributes['gen_ai.usage.output_tokens']).toBeGreaterThan(0)
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
  })

  it('report together what the run has counted, even if an abandoned model reported more', () => {
    const recorded = new Recorded()
    const tracer = recorded.provider.getTracer('app')
    const kit = { tracer, names: namesBySemconv.latest, metrics: () => null, captureContent: false } as const
    const spans = createRequestSpans({ ...kit, agentName: undefined }, null)
    const place = { context: ROOT_CONTEXT, agentName: undefined, sessionId: 's' }
    const ask = (fallback: number, used: Usage | null) => {
      const request = { provider: 'p', model: 'm', step: 1, attempt: 1, fallback, usage: used, waits: [] }
      const unknown = { endpoint: null, sentAt: 0, firstChunkAt: null, response: null, responseId: null }
      const body = { sampling: {}, stream: true }
      spans.getContext(
        {
          type: 'inference',
          purpose: 'answer',
          failure: null,
          ...request,
          ...unknown,
          request: body,
        } as never,
        place,
        () => undefined,
      )
    }
    ask(0, { ...noUsage, inputTokens: 4, outputTokens: 9, totalTokens: 13 })
    ask(1, null)
    spans.pay({ ...noUsage, inputTokens: 6, outputTokens: 5, totalTokens: 11 })
    spans.settle()
    const counts = recorded
      .named('chat')
      .map(({ attributes }) => ['input', 'output'].map((kind) => attributes[`gen_ai.usage.${kind}_tokens`]))
    expect(counts).toEqual([
      [4, 5],
      [2, 0],
    ])
  })

  it('include shields and memory, with their child spans', async () => {
    const recorded = new Recorded()
    const tracer = recorded.provider.getTracer('app')
    const check = async () => {
      await tick()
      tracer.startSpan('a classifier').end()
      return { action: 'allow' as const }
    }
    const shield = defineShield({ name: 'classifier', check })
    await played([call('look'), text('Done.')], {
      tools: [tool('look')],
      shields: { input: [shield], toolInput: [shield], toolOutput: [shield], output: [shield] },
      memory: {
        retrieve: async () => {
          await tick()
          tracer.startSpan('SELECT').end()
          return [{ source: 'a', text: 'b' }]
        },
      },
      telemetry: recorded.otel(),
    })
    const classified = [{ 'a classifier': [] }]
    expect(recorded.tree).toEqual([
      {
        invoke_agent: [
          { 'statewright.shield input': classified },
          { retrieval: [{ SELECT: [] }] },
          { 'chat gpt-test': [] },
          { 'statewright.shield toolInput': classified },
          { 'execute_tool look': [] },
          { 'statewright.shield toolOutput': classified },
          { 'chat gpt-test': [] },
          { 'statewright.shield output': classified },
        ],
      },
    ])
    expect(recorded.open).toBe(0)
  })

  it('include a sub-agent below its call, with the telemetry of the run, and each token once', async () => {
    const recorded = new Recorded()
    const child = await stage([call('look', {}, { usage }), text('Four.', { usage })], {
      tools: [tool('look')],
    })
    const research = child.agent.asTool({ name: 'research', description: 'Finds things out.' }) as Tool
    const { result } = await played([call('research', { task: 'x' }, { usage }), text('Done.', { usage })], {
      tools: [research],
      telemetry: recorded.otel({ agentName: 'lead' }),
    })
    expect(recorded.tree).toEqual([
      {
        'invoke_agent lead': [
          { 'chat gpt-test': [] },
          {
            'execute_tool research': [
              {
                'invoke_agent research': [
                  { 'chat gpt-test': [] },
                  { 'execute_tool look': [] },
                  { 'chat gpt-test': [] },
                ],
              },
            ],
          },
          { 'chat gpt-test': [] },
        ],
      },
    ])
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
    expect(recorded.tokens.inputTokens).toBe(40)
    expect(recorded.open).toBe(0)
  })
})

describe('every provider and transport', () => {
  const speaks = {
    openaiChat: (baseURL: string) => openaiChat({ model: 'gpt-test', baseURL, apiKey: 'none' }),
    'openaiChat over fetch': (baseURL: string) =>
      openaiChat({ model: 'gpt-test', baseURL, apiKey: 'none', fetch: globalThis.fetch }),
    openaiResponses: (baseURL: string) => openaiResponses({ model: 'gpt-test', baseURL, apiKey: 'none' }),
    languageModel: (baseURL: string) =>
      languageModel(
        createOpenAICompatible({ name: 'openai', baseURL, apiKey: 'none', includeUsage: true })('gpt-test'),
      ),
  }

  it.each(
    Object.keys(speaks).flatMap((name) =>
      [true, false].map((stream) => [name as keyof typeof speaks, stream] as const),
    ),
  )('reports the same tokens as the run: %s, streamed: %s', async (name, stream) => {
    const recorded = new Recorded()
    const counted = { input: 100, output: 20, cached: 40, reasoning: 5 }
    const theatre = await stage([call('look', {}, { usage: counted }), text('Done.', { usage: counted })])
    const model = speaks[name](theatre.rehearsal.url)
    const agent = again(theatre, { model, stream, tools: [tool('look')], telemetry: recorded.otel() })
    const result = await agent.run('Go.').result
    expect(result.state).toBe('COMPLETED')
    expect(recorded.tokens).toEqual({
      inputTokens: 200,
      outputTokens: 40,
      cachedInputTokens: 80,
      reasoningTokens: 10,
    })
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
    expect(recorded.named('chat').map(({ attributes }) => attributes['gen_ai.request.stream'])).toEqual([
      stream,
      stream,
    ])
  })

  it.each(
    Object.keys(speaks).flatMap((name) =>
      [true, false].map((stream) => [name as keyof typeof speaks, stream] as const),
    ),
  )('reports the provider’s response id, which is not stored: %s, streamed: %s', async (name, stream) => {
    const recorded = new Recorded()
    const theatre = await stage([call('look'), text('Done.')])
    const store = memoryStore()
    const model = speaks[name](theatre.rehearsal.url)
    const agent = again(theatre, {
      model,
      stream,
      store,
      tools: [tool('look')],
      telemetry: recorded.otel(),
    })
    const run = agent.run('Go.', { session: 'kept' })
    const reported: unknown[] = []
    run.events$.subscribe((event) => reported.push(event))
    const result = await run.result
    const server = name === 'languageModel' ? [undefined, undefined] : addressOf(theatre.rehearsal.url)
    expect(recorded.named('chat').map(serverOf)).toEqual([server, server])
    const ids = recorded.named('chat').map(({ attributes }) => attributes['gen_ai.response.id'])
    expect(new Set(ids).size).toBe(2)
    expect(ids.every((id) => typeof id === 'string' && id !== '')).toBe(true)
    const { records } = clearRecords(store.read('kept'), 'kept')
    const written = JSON.stringify([result, reported, records])
    expect(ids.filter((id) => written.includes(JSON.stringify(id)))).toEqual([])
    expect(records.flatMap((record) => faults(record))).toEqual([])
    expect(records.some((record) => 'link' in record)).toBe(true)
  })

  it.each([true, false])(
    'has provider-executed tools as events of its request, without queries and results: streamed: %s',
    async (stream) => {
      const searched = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { query: 'hush' } }
      const linked = { id: 'mcp_1', type: 'mcp_call', server_label: 'zip', name: 'shorten', output: 'hush' }
      const message = {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Four.' }],
      }
      const output = [searched, linked, message]
      const response = { object: 'response', id: 'resp_1', status: 'completed', model: 'm', output }
      await using server = await serve(
        stream
          ? events(
              ...output.map((item, at) => ({
                type: 'response.output_item.done',
                output_index: at,
                item,
              })),
              { type: 'response.completed', response },
            )
          : json(200, response),
      )
      const recorded = new Recorded()
      const model = openaiResponses({ model: 'm', baseURL: server.baseURL, apiKey: 'none' })
      const result = await createAgent({ model, stream, telemetry: recorded.otel() }).run('How many?').result
      expect(result.output).toBe('Four.')
      expect(recorded.tree).toEqual([{ invoke_agent: [{ 'chat m': [] }] }])
      const chatEvents = recorded
        .named('chat')[0]
        ?.events.map(({ name, attributes }) => ({ name, ...attributes }))
      const hosted = { name: 'statewright.hosted_tool', 'statewright.hosted_tool.outcome': 'ok' }
      expect(chatEvents).toMatchObject([
        { ...hosted, 'gen_ai.tool.name': 'web_search' },
        { ...hosted, 'gen_ai.tool.name': 'zip.shorten' },
      ])
      expect(recorded.words).not.toMatch(/hush|Four/)
    },
  )

  it('may report its server: only its name and port', async () => {
    const ask = async (model: ModelProvider) => {
      const recorded = new Recorded()
      await createAgent({ model, telemetry: recorded.otel() }).run('Hi.').result
      expect(recorded.words).not.toMatch(/hush/)
      return recorded.named('chat').map(serverOf)
    }
    const parrot = (endpoint?: unknown): ModelProvider =>
      ({ provider: 'mine', model: 'parrot-1', request: async () => answer, endpoint }) as ModelProvider
    expect(await ask(parrot({ host: 'models.example', port: 8443 }))).toEqual([['models.example', 8443]])
    for (const odd of [
      undefined,
      null,
      7,
      'https://hush@models.example/hush',
      { host: 'ann:hush@models.example', port: 443 },
      { host: 'models.example/hush', port: 443 },
      { host: 'models.example', port: 'hush' },
    ])
      expect(await ask(parrot(odd))).toEqual([[undefined, undefined]])
    const at = (baseURL: string) => openaiChat({ model: 'm', baseURL, query: { key: 'hush' } }).endpoint
    expect(at('https://models.example/hush/v1?key=hush')).toEqual({ host: 'models.example', port: 443 })
    expect(at('http://models.example/v1')).toEqual({ host: 'models.example', port: 80 })
    expect(at('http://[::1]:8080/v1')).toEqual({ host: '::1', port: 8080 })
    const own = (baseURL: unknown) =>
      openaiChat({ model: 'm', client: Object.assign(new OpenAI({ apiKey: 'hush' }), { baseURL }) }).endpoint
    expect(own('https://ann:hush@models.example:9/v1')).toEqual({ host: 'models.example', port: 9 })
    expect(own(undefined)).toBeUndefined()
  })

  it('that replaces another from the start is reported with its own server or none', async () => {
    const recorded = new Recorded()
    const question: string[] = []
    const model = (name: string, fails: boolean, endpoint?: ModelProvider['endpoint']): ModelProvider => ({
      provider: 'mine',
      model: name,
      ...(endpoint && { endpoint }),
      request: async () => {
        question.push(name)
        if (fails)
          throw new ModelError({ kind: 'transient', code: 'overloaded', message: 'Busy.', status: 503 })
        return question.length === 2 ? { ...answer, text: '', toolCalls: [look] } : answer
      },
    })
    const look = { id: 'call_1', type: 'function' as const, function: { name: 'look', arguments: '{}' } }
    const models = [model('first', true, { host: 'first.example', port: 443 }), model('second', false)]
    const agent = createAgent({
      model: withFallbacks(models),
      tools: [tool('look')],
      telemetry: recorded.otel(),
    })
    const result = await agent.run('Hi.').result
    expect(result.state).toBe('COMPLETED')
    expect(question).toEqual(['first', 'second', 'second'])
    expect(recorded.named('chat').map(serverOf)).toEqual([
      ['first.example', 443],
      [undefined, undefined],
      ['', 0],
    ])
  })

  it('may report a response id', async () => {
    const recorded = new Recorded()
    const model = {
      provider: 'mine',
      model: 'parrot-1',
      request: async () => ({ ...answer, id: 'answer-7' }),
    }
    const result = await createAgent({ model, telemetry: recorded.otel() }).run('Hi.').result
    expect(recorded.named('chat')[0]?.attributes['gen_ai.response.id']).toBe('answer-7')
    expect(JSON.stringify(result)).not.toContain('answer-7')
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
  })
})

describe('no span stays open', () => {
  it('while a person decides, and the answer starts another segment that links to the previous one', async () => {
    const recorded = new Recorded()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const theatre = await stage([call('pay', {}, { usage }), text('Done.', { usage })], {
      tools: [pay],
      telemetry: recorded.otel(),
    })
    const play = theatre.run()
    const { pending = [] } = await play.rest()
    expect(recorded.open).toBe(0)
    expect(recorded.named('invoke_agent')[0]?.attributes).toMatchObject({
      'statewright.outcome.state': 'WAITING_FOR_INPUT',
      'statewright.outcome.reason': 'approval',
    })
    const tracer = recorded.provider.getTracer('app')
    tracer.startActiveSpan('POST /approve', (span) => {
      for (const question of pending) play.run.approve(question)
      span.end()
    })
    const result = await play.end(2)
    expect(recorded.open).toBe(0)
    expect(recorded.tree).toEqual([
      { invoke_agent: [{ 'chat gpt-test': [] }] },
      { 'POST /approve': [{ invoke_agent: [{ 'execute_tool pay': [] }, { 'chat gpt-test': [] }] }] },
    ])
    const [first, second] = recorded.named('invoke_agent')
    expect(second?.links.map((link) => link.context.spanId)).toEqual([first?.spanContext().spanId])
    expect(recorded.named('execute_tool')[0]?.attributes).toMatchObject({
      'statewright.tool.status': 'ok',
    })
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
  })

  it('if an answer leaves the run waiting', async () => {
    const recorded = new Recorded()
    const tools = [clientTool('ask')]
    const theatre = await stage([calls([['ask'], ['ask']]), text('Done.')], {
      tools,
      telemetry: recorded.otel(),
    })
    const play = theatre.run()
    const { pending = [] } = await play.rest()
    expect(pending).toHaveLength(2)
    play.run.addToolOutput(pending[0] as never, 'yes')
    await tick()
    expect(recorded.named('invoke_agent')).toHaveLength(1)
    play.run.addToolOutput(pending[1] as never, 'yes')
    await play.end(2)
    expect(recorded.named('invoke_agent')).toHaveLength(2)
  })

  it.each(['a request', 'a tool'] as const)('if the run is cancelled in %s that hangs', async (where) => {
    const recorded = new Recorded()
    const hangs = tool('hangs', () => new Promise(() => undefined))
    const turn =
      where === 'a tool' ? call('hangs', {}, { usage }) : text('One two three.', { hang: 2, chunkSize: 4 })
    const theatre = await stage([turn], { tools: [hangs], telemetry: recorded.otel() })
    const play = theatre.run()
    if (where === 'a tool') await play.event('step_started', ({ stepType }) => stepType === 'tool_execution')
    else await play.event('stream_chunk')
    await tick()
    play.run.cancel()
    const result = await play.run.result
    expect(result.state).toBe('CANCELLED')
    expect(recorded.open).toBe(0)
    expect(recorded.tokens).toEqual(tokensOf(result.usage))
    expect(result.usage.outputTokens).toBeGreaterThan(0)
    const [interrupted] = recorded.named(where === 'a tool' ? 'execute_tool' : 'chat')
    expect(interrupted?.attributes['statewright.cancelled']).toBe(true)
    const [stretch] = recorded.named('invoke_agent')
    expect(stretch?.attributes['statewright.outcome.state']).toBe('CANCELLED')
    expect(isFailed(stretch as never)).toBe(false)
  })

  it('if the run times out, which is an error', async () => {
    const recorded = new Recorded()
    const theatre = await stage([text('One two.', { hang: true })], {
      limits: { timeoutMs: 1_000 },
      telemetry: recorded.otel(),
    })
    const play = theatre.run()
    await theatre.arrival()
    theatre.clock.increment(1_000)
    expect((await play.run.result).state).toBe('TIMED_OUT')
    expect(recorded.open).toBe(0)
    const [stretch] = recorded.named('invoke_agent')
    expect(isFailed(stretch as never)).toBe(true)
    expect(stretch?.attributes['error.type']).toBe('timeout')
  })
})

describe('a run that continues in another process', () => {
  it('links to the previous segment at a rest', async () => {
    const recorded = new Recorded()
    const store = memoryStore()
    const options = { tools: [tool('pay', () => 'paid', { needsApproval: true })], store }
    const theatre = await stage([call('pay', {}, { usage }), text('Done.', { usage })], {
      ...options,
      telemetry: recorded.otel(),
    })
    const { sessionId } = await theatre.run('Go.', { session: 's' }).run.result
    const elsewhere = new Recorded()
    const run = await again(theatre, { ...options, telemetry: elsewhere.otel() }).resume(sessionId)
    expect(elsewhere.spans).toEqual([])
    run.approve('call_1_1')
    const result = await run.result
    expect(result.state).toBe('COMPLETED')
    const [before] = recorded.named('invoke_agent')
    const [after] = elsewhere.named('invoke_agent')
    expect(after?.links.map((link) => link.context)).toMatchObject(
      [before?.spanContext()].map((one) => ({
        traceId: one?.traceId,
        spanId: one?.spanId,
        isRemote: true,
      })),
    )
    expect(after?.attributes['statewright.resumed']).toBe(true)
    expect(elsewhere.open + recorded.open).toBe(0)
    const sum = recorded.tokens.inputTokens + elsewhere.tokens.inputTokens
    expect(sum).toBe(result.usage.inputTokens)
  })

  it('links to the segment in which a process was killed, even if that was a continuation', async () => {
    const recorded = new Recorded()
    const store = memoryStore()
    const gate = latch()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    let hangs = true
    const read = tool('read', () => (hangs ? gate.opened : 'read'), { readOnly: true })
    const options = { tools: [pay, read], store }
    const theatre = await stage([call('pay'), call('read'), text('Done.')], {
      ...options,
      telemetry: recorded.otel(),
    })
    const play = theatre.run('Go.', { session: 's' })
    await play.rest()
    play.run.approve('call_1_1')
    await until(() => read.inputs.length === 1)
    hangs = false
    const elsewhere = new Recorded()
    const copy = copied(store, 's')
    const run = await again(theatre, { ...options, store: copy, telemetry: elsewhere.otel() }).resume('s')
    expect((await run.result).state).toBe('COMPLETED')
    gate.open()
    await play.run.result.catch(() => undefined)
    const [, killed] = recorded.named('invoke_agent')
    const [after] = elsewhere.named('invoke_agent')
    expect(after?.links.map((link) => link.context.spanId)).toEqual([killed?.spanContext().spanId])
    expect(elsewhere.open).toBe(0)
    expect(elsewhere.tree).toEqual([{ invoke_agent: [{ 'execute_tool read': [] }, { 'chat gpt-test': [] }] }])
  })
})

/** A copy of the session, as another process finds it after a kill. */
function copied(store: SyncSessionStore, id: string): SyncSessionStore {
  const copy = memoryStore()
  const lease = copy.acquire(id, { holder: 'test', ttlMs: 1_000 })
  copy.append(lease, store.read(id))
  copy.release(lease)
  return copy
}
