import type { ChatTransport as AiTransport, UIMessage } from 'ai'
import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  memoryStore,
  type SessionStore,
} from '../../src/index.js'
import { ChatError, chatTransport, type ChatTransportOptions } from '../../src/ui/client/index.js'
import { chatHandler, type ChatHandlerOptions } from '../../src/ui/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { passing } from '../support/passing.js'
import { latch, until } from '../support/play.js'
import { clientTool, tool } from '../support/tools.js'
import {
  Chat,
  type Handler,
  lastAssistantMessageIsCompleteWithToolCalls,
  protocol,
  textOf,
} from './client.js'
import { Network } from './network.js'
import { longTest, sampled } from '../support/extent.js'

type Page = ReturnType<typeof openPage>
type Asked = { toolName: string; toolCallId: string }

/** A process: an agent whose model the test answers, behind a handler. */
function openServer(
  options: Partial<AgentOptions> = {},
  more: Partial<ChatHandlerOptions> = {},
  store: SessionStore = memoryStore(),
) {
  const model = new ManualModel()
  const clock = new SimulatedClock()
  const agent = createAgent({ model, store, clock, ...options }) as Agent
  const handler = chatHandler({ agent, authorize: 'none', protocol, ...more })
  const untilRequest = (count = 1): Promise<unknown> =>
    until(() => model.attempts.length >= count && !!model.pending)
  return { model, clock, agent, handler, store, untilRequest }
}

/** A page with `useChat` on the transport, over a network that can break. */
function openPage(
  handler: Handler,
  options: ChatTransportOptions = {},
  { id = 'c', network = new Network(handler), ...more }: Record<string, unknown> & { network?: Network } = {},
) {
  const clock = new SimulatedClock()
  const states: string[] = []
  const transport = chatTransport({
    fetch: network.fetch,
    clock: clock as never,
    protocol: protocol as 'v7',
    onConnection: (state) => states.push(state),
    ...options,
  })
  const calls: Asked[] = []
  const chat = new Chat(id as string, handler, {
    transport: transport as AiTransport<UIMessage>,
    onToolCall: ({ toolCall }) => void calls.push(toolCall),
    ...more,
  })
  return { clock, states, transport, network, chat, calls }
}

const photo = (letter: string) => ({
  type: 'file' as const,
  mediaType: 'image/png',
  url: `data:image/png;base64,${letter.repeat(4_000_000)}`,
})

const away = (): Error => new TypeError('fetch failed')
const words = ({ chat }: Page): string[] => chat.messages.map(textOf)
const codeOf = (error: unknown): unknown => (error instanceof ChatError ? error.code : error)
const refusal = async (sent: Promise<unknown>): Promise<ChatError> => {
  const error: unknown = await sent.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof ChatError) return error
  throw new Error(`It is no ChatError: ${String(error)}`)
}

describe('chatTransport', () => {
  longTest(
    'sends only the last message, so a chat with three photos of 3 MB stays below the limit',
    async () => {
      const { handler, model, untilRequest } = openServer()
      const page = openPage(handler)
      for (const [at, letter] of ['a', 'b', 'c', ''].entries()) {
        const text =
          letter === ''
            ? page.chat.sendMessage({ text: 'Which is best?' })
            : page.chat.sendMessage({ parts: [photo(letter)] })
        await untilRequest(at + 1)
        model.pending?.answer({ text: `Answer ${at}.` })
        await text
      }
      expect(page.chat.errors).toEqual([])
      expect(page.chat.text).toBe('Answer 3.')
      expect(page.network.requests.map(({ body }) => body.messages?.length)).toEqual([1, 1, 1, 1])
      expect(Math.max(...page.network.requests.map(({ bytes }) => bytes))).toBeLessThan(4_100_000)
    },
  )

  it('sends the trigger and the message id for regenerate and edit', async () => {
    const page = openPage(async () =>
      Response.json({ error: { code: 'x', message: 'Not now.' } }, { status: 400 }),
    )
    page.chat.messages = [
      { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'One?' }] },
      { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'One.' }] },
      { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'Two?' }] },
      { id: 'a2', role: 'assistant', parts: [{ type: 'text', text: 'Two.' }] },
    ]
    await page.chat.regenerate({ messageId: 'a2' })
    await page.chat.sendMessage({ text: 'One, really?', messageId: 'u1' })
    const [again, edited] = page.network.requests.map(({ body }) => body)
    expect(again).toMatchObject({ trigger: 'regenerate-message', messageId: 'a2', messages: [{ id: 'u2' }] })
    expect(edited).toMatchObject({
      trigger: 'submit-message',
      messageId: 'u1',
      messages: [{ id: 'u1', parts: [{ text: 'One, really?' }] }],
    })
  })

  it('reads its headers for each request, and adds those of useChat', async () => {
    let count = 0
    const page = openPage(async () => new Response(null, { status: 204 }), {
      headers: async () => ({ 'X-Count': String((count += 1)), none: undefined }),
      credentials: 'include',
    })
    await page.transport.stop('c')
    await page.transport.reconnectToStream({ chatId: 'c', headers: { 'x-more': 'yes' } }).catch(() => null)
    const sent = page.network.requests.map(({ headers }) => [headers.get('x-count'), headers.get('x-more')])
    expect(sent.slice(0, 2)).toEqual([
      ['1', null],
      ['2', 'yes'],
    ])
    expect(page.network.requests.some(({ headers }) => headers.has('none'))).toBe(false)
  })

  it('reads a stream regardless of how the network splits it', async () => {
    const chunks = [
      { type: 'start', messageId: 'a' },
      { type: 'start-step' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Grüße ✓' },
      { type: 'text-end', id: 't' },
      { type: 'finish', finishReason: 'stop' },
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('\n', '\r\n'),
        fc.array(fc.nat(9), { minLength: 1 }),
        async (end, sizes) => {
          const frames = [': ', ...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}`), 'data: [DONE]']
          const bytes = new TextEncoder().encode(frames.map((frame) => frame + end + end).join(''))
          let [at, step] = [0, 0]
          const body = new ReadableStream<Uint8Array>({
            pull: (controller) => {
              const size = 1 + (sizes[(step += 1) % sizes.length] as number)
              if (at < bytes.length) controller.enqueue(bytes.slice(at, (at += size)))
              else controller.close()
            },
          })
          const page = openPage(async () => new Response(body))
          await page.chat.sendMessage({ text: 'Go.' })
          expect([page.chat.text, page.chat.errors]).toEqual(['Grüße ✓', []])
        },
      ),
      { numRuns: sampled(30) },
    )
  })

  it.each([
    [{ apii: '/x' }, 'apii', /has no option 'apii'. Options: api, /],
    [{ api: '' }, 'api', /mount path of chatHandler/],
    [{ protocol: 'v5' }, 'protocol', /'v6' for ai 6/],
    [{ maxOutageMs: -1 }, 'maxOutageMs', /milliseconds/],
    [{ onConnection: 'x' }, 'onConnection', /a function/],
  ])('refuses the options %j', (options, subject, message) => {
    expect(() => chatTransport(options as never)).toThrow(message)
    expect(() => chatTransport(options as never)).toThrow(expect.objectContaining({ subject }))
  })
})

describe('stop()', () => {
  it('stops the run on the server', async () => {
    const { handler, model, agent, untilRequest } = openServer()
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    await until(() => page.network.requests.length === 1)
    await page.chat.stop()
    await sending
    await until(() => model.pending === null)
    await until(() => page.network.sentTo(/POST .*\/c\/stop/).length === 1)
    expect((await agent.replay('c')).run).toMatchObject({ state: 'CANCELLED' })
    expect(page.chat.errors).toEqual([])
  })

  it('also stops it after a reload', async () => {
    const { handler, model, untilRequest } = openServer()
    const first = openPage(handler)
    void first.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    const page = openPage(handler)
    const resumed = page.chat.resumeStream()
    await until(() => page.network.requests.length === 1 && page.chat.status === 'submitted')
    await page.chat.stop()
    await resumed
    await until(() => model.pending === null)
  })

  it('is not triggered by a second resumeStream() or by the end of an answer', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    const twice = openPage(handler)
    const resumed = Promise.all([twice.chat.resumeStream(), twice.chat.resumeStream()])
    await until(() => twice.network.requests.length === 2)
    await settled()
    model.pending?.answer({ text: 'Done.' })
    await Promise.all([sending, resumed])
    await page.chat.stop()
    await settled()
    expect([page.chat.text, twice.chat.text]).toEqual(['Done.', 'Done.'])
    expect([...page.network.sentTo(/stop/), ...twice.network.sentTo(/stop/)]).toEqual([])
  })

  it('does not stop the run with stopRuns: false', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler, { stopRuns: false })
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    await page.chat.stop()
    await sending
    await settled()
    expect(page.network.sentTo(/stop/)).toEqual([])
    expect(model.pending).not.toBeNull()
    await page.transport.stop('c')
    await until(() => model.pending === null)
  })

  it('reports if the run could not be stopped', async () => {
    const { handler, untilRequest } = openServer()
    const failed: ChatError[] = []
    const page = openPage(handler, { onStopError: (error) => failed.push(error) })
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    page.network.isAway = () =>
      Response.json({ error: { code: 'unauthorized', message: 'No.' } }, { status: 401 })
    await page.chat.stop()
    await sending
    await until(() => failed.length === 1)
    expect(failed[0]).toMatchObject({ code: 'unauthorized', status: 401, message: 'No.' })
  })
})

describe('while the server is unreachable', () => {
  it('retries a message until the server is back after 30 seconds, and it is answered once', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    page.network.isAway = () => (page.clock.now() < 30_000 ? away() : null)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await passing(page.clock, untilRequest())
    model.pending?.answer({ text: 'Done.' })
    await sending
    expect([page.chat.text, page.chat.errors, page.states]).toEqual(['Done.', [], ['lost', 'open']])
    expect(model.attempts).toHaveLength(1)
    // Half a second, one, two, four, then at most five; at least half of the delay.
    const tries = page.network.sentTo(/POST/).length
    expect(tries).toBeGreaterThanOrEqual(8)
    expect(tries).toBeLessThanOrEqual(20)
  })

  it.each([
    ['a proxy requests it', () => new Response('<h1>Bad gateway</h1>', { status: 502 })],
    [
      'its store is unavailable',
      () => Response.json({ error: { code: 'store_unavailable', message: 'x' } }, { status: 503 }),
    ],
  ])('retries if %s', async (_, instead) => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    page.network.isAway = () => (page.clock.now() < 3000 ? instead() : null)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await passing(page.clock, untilRequest())
    model.pending?.answer({ text: 'Done.' })
    await sending
    expect([page.chat.text, page.chat.errors]).toEqual(['Done.', []])
  })

  it('gives up after maxOutageMs, and stop() ends the retries', async () => {
    const { handler } = openServer()
    const page = openPage(handler, { maxOutageMs: 10_000 })
    page.network.isAway = away
    await passing(page.clock, page.chat.sendMessage({ text: 'Go.' }))
    expect(page.chat.errors.map(codeOf)).toEqual(['server_away'])
    expect(page.chat.errors[0]?.message).toBe('The server cannot be reached. Try again later.')
    const sending = page.chat.sendMessage({ text: 'Go on.' })
    await until(() => page.network.sentTo(/POST/).length > 3)
    await page.chat.stop()
    await sending
    expect([page.chat.status, page.chat.errors.length]).toEqual(['ready', 1])
  })

  it('fails with connection_lost during an answer, and resumeStream() returns all of it once the server is back', async () => {
    const look = tool('look')
    const { handler, model, untilRequest } = openServer({ tools: [look] })
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    model.pending?.answer({ text: 'First. ', toolCalls: [call('c1', 'look')] })
    await untilRequest(2)
    model.pending?.delta('And')
    await until(() => words(page)[1]?.startsWith('First. ') === true)
    page.network.isAway = () => (page.clock.now() < 30_000 ? away() : null)
    page.network.cut()
    await sending
    expect(page.chat.errors.map(codeOf)).toEqual(['connection_lost'])
    const resumed = page.chat.resumeStream()
    model.pending?.delta(' more')
    await passing(
      page.clock,
      until(() => page.states.at(-1) === 'open'),
    )
    model.pending?.answer({ text: 'And more.' })
    await resumed
    expect([words(page), page.chat.status]).toEqual([['Go.', 'First. And more.'], 'ready'])
    expect([page.chat.messages.length, look.inputs.length, model.attempts.length]).toEqual([2, 1, 2])
  })

  it('returns an answer that ended during an outage', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    model.pending?.delta('Do')
    await until(() => page.chat.lastMessage?.role === 'assistant')
    page.network.cut()
    await sending
    model.pending?.answer({ text: 'Done.' })
    await until(() => model.pending === null)
    await page.chat.resumeStream()
    expect([words(page), page.chat.status]).toEqual([['Go.', 'Done.'], 'ready'])
    expect(model.attempts).toHaveLength(1)
  })

  it('also returns it to a page that only watches', async () => {
    const { handler, model, untilRequest } = openServer()
    void openPage(handler).chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    model.pending?.delta('Do')
    const page = openPage(handler, {}, { messages: await openPage(handler).transport.readMessages('c') })
    const resumed = page.chat.resumeStream()
    await until(() => page.chat.lastMessage?.role === 'assistant')
    page.network.cut()
    await resumed
    expect(page.chat.errors.map(codeOf)).toEqual(['connection_lost'])
    model.pending?.answer({ text: 'Done.' })
    await until(() => model.pending === null)
    await page.chat.resumeStream()
    expect([words(page), page.chat.status]).toEqual([['Go.', 'Done.'], 'ready'])
  })

  it('returns another answer that ended during an outage with the number of its branch', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const first = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    model.pending?.answer({ text: 'One.' })
    await first
    const again = page.chat.regenerate()
    await untilRequest(2)
    model.pending?.delta('Tw')
    await until(() => page.chat.lastMessage?.role === 'assistant')
    page.network.cut()
    await again
    model.pending?.answer({ text: 'Two.' })
    await until(() => model.pending === null)
    await settled()
    await page.chat.resumeStream()
    const [, reloaded] = await page.transport.readMessages('c')
    const branchesOf = (message: { parts: readonly { type: string }[] } | undefined) =>
      message?.parts.find(({ type }) => type === 'data-branches')
    expect(branchesOf(page.chat.lastMessage)).toEqual(branchesOf(reloaded as never))
    expect(branchesOf(page.chat.lastMessage)).toMatchObject({ data: { position: 2, count: 2 } })
    expect([words(page), page.chat.status]).toEqual([['Go.', 'Two.'], 'ready'])
  })

  it('returns the error of an answer that failed during an outage', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const first = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    model.pending?.answer({ text: 'One.' })
    await first
    const again = page.chat.regenerate()
    await untilRequest(2)
    model.pending?.delta('Tw')
    await until(() => page.chat.lastMessage?.role === 'assistant')
    page.network.cut()
    await again
    model.pending?.fail({ kind: 'fatal', code: 'http_400', status: 400 })
    await until(() => model.pending === null)
    await settled()
    await page.chat.resumeStream()
    expect(page.chat.errors.map(({ message }) => message)).toEqual([
      'The connection was lost. The answer continues on the server.',
      'The model could not answer. Try again later. (provider_error)',
    ])
    expect([page.chat.messages.length, page.chat.status]).toEqual([2, 'error'])
  })

  it('returns the last answer after a second outage if the chat has continued without the page', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'One?' })
    await untilRequest()
    model.pending?.delta('Fi')
    await until(() => page.chat.lastMessage?.role === 'assistant')
    page.network.cut()
    await sending
    model.pending?.answer({ text: 'First.' })
    const other = openPage(handler).chat.sendMessage({ text: 'Two?' })
    await untilRequest(2)
    model.pending?.answer({ text: 'Second.' })
    await other
    // The replay breaks before its first chunk.
    let replays = 0
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(away()) })
    page.network.isAway = () =>
      page.network.requests.at(-1)?.path === '/api/chat/c/stream' && ++replays === 2
        ? new Response(broken)
        : null
    await page.chat.resumeStream()
    expect(page.chat.errors.map(codeOf)).toEqual(['connection_lost', 'connection_lost'])
    await page.chat.resumeStream()
    expect([page.chat.text, page.chat.status, page.chat.errors.length]).toEqual(['Second.', 'ready', 2])
    expect(model.attempts).toHaveLength(2)
  })

  it('ends a reconnect that is aborted when its response arrives', async () => {
    const rejections: unknown[] = []
    const note = (reason: unknown): void => void rejections.push(reason)
    process.on('unhandledRejection', note)
    const { handler, model, untilRequest } = openServer()
    void openPage(handler).chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    const abort = new AbortController()
    const network = new Network(handler)
    const { transport } = openPage(handler, {
      fetch: async (url, init) => {
        const response = await network.fetch(url, init)
        abort.abort()
        return response
      },
      stopRuns: false,
    })
    expect(await transport.reconnectToStream({ chatId: 'c', abortSignal: abort.signal })).toBeNull()
    await settled()
    process.off('unhandledRejection', note)
    expect(rejections).toEqual([])
    model.pending?.answer({ text: 'Done.' })
  })

  it('reads a branch of a chat', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const answer = async (text: string, n: number, work: Promise<void>) => {
      await untilRequest(n)
      model.pending?.answer({ text })
      await work
    }
    await answer('One.', 1, page.chat.sendMessage({ text: 'Go.' }))
    await answer('Two.', 2, page.chat.regenerate())
    const read = async (branch?: number) =>
      (await page.transport.readMessages('c', branch === undefined ? {} : { branch })).map(({ parts }) =>
        parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
      )
    expect([await read(), await read(1), await read(2)]).toEqual([
      ['Go.', 'Two.'],
      ['Go.', 'One.'],
      ['Go.', 'Two.'],
    ])
    await expect(page.transport.readMessages('c', { branch: 3 })).rejects.toMatchObject({
      code: 'unknown_branch',
    })
  })

  it('continues an answer of a dead process by resending its message', async () => {
    const first = openServer()
    const page = openPage(first.handler)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await first.untilRequest()
    first.model.pending?.delta('Ha')
    await until(() => page.chat.lastMessage?.role === 'assistant')
    // The lease of a dead process expires. Here it is another store over the same log.
    const copy = memoryStore()
    const lease = copy.acquire('c', { holder: 'test', ttlMs: 1000 })
    copy.append(lease, await first.store.read('c'))
    copy.release(lease)
    const next = openServer({}, {}, copy)
    page.network.handler = next.handler
    page.network.cut()
    await sending
    const resumed = page.chat.resumeStream()
    await next.untilRequest()
    next.model.pending?.answer({ text: 'Half, and the rest.' })
    await resumed
    expect([words(page), page.chat.status]).toEqual([['Go.', 'Half, and the rest.'], 'ready'])
  })

  it('keeps waiting for the turn of a queued message if its connection breaks', async () => {
    const { handler, model, untilRequest } = openServer()
    const page = openPage(handler)
    const first = page.chat.sendMessage({ text: 'One?' })
    await untilRequest()
    const other = openPage(handler)
    const second = other.chat.sendMessage({ text: 'Two?' })
    await until(() => other.network.requests.length === 1)
    await settled()
    other.network.cut()
    await until(() => other.network.requests.length === 2)
    model.pending?.answer({ text: 'First.' })
    await first
    await untilRequest(2)
    model.pending?.answer({ text: 'Second.' })
    await second
    expect([other.chat.text, other.chat.errors, model.attempts.length]).toEqual(['Second.', [], 2])
  })

  it('considers a connection lost after 45 seconds of silence', async () => {
    const silent = new ReadableStream<Uint8Array>({
      start: (controller) =>
        controller.enqueue(new TextEncoder().encode('data: {"type":"start","messageId":"a"}\n\n')),
    })
    const page = openPage(async () => new Response(silent))
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await until(() => page.chat.messages.length === 2)
    page.clock.increment(44_000)
    await settled()
    expect(page.chat.errors).toEqual([])
    page.clock.increment(1000)
    await sending
    expect(page.chat.errors.map(codeOf)).toEqual(['connection_lost'])
  })
})

describe('a client tool', () => {
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls

  it('is requested once if it waits during a reload, and the run continues with its result', async () => {
    const { handler, model, untilRequest } = openServer({ tools: [clientTool('pick'), tool('look')] })
    const before = openPage(handler)
    const sending = before.chat.sendMessage({ text: 'Pick.' })
    await untilRequest()
    model.pending?.answer({
      text: 'A moment.',
      toolCalls: [call('c1', 'pick', { of: 3 }), call('c2', 'look')],
    })
    await sending
    expect(before.calls.map(({ toolName }) => toolName)).toEqual(['pick', 'look'])

    const messages = await before.transport.readMessages('c')
    const page = openPage(handler, {}, { messages, sendAutomaticallyWhen })
    await page.chat.resumeStream()
    expect(page.calls).toMatchObject([{ toolName: 'pick', toolCallId: 'c1', input: { of: 3 } }])
    expect([page.chat.messages.length, page.chat.text, page.chat.status]).toEqual([2, 'A moment.', 'ready'])
    void page.chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 2 })
    await untilRequest(2)
    model.pending?.answer({ text: ' Two it is.' })
    await until(() => page.chat.status === 'ready' && page.chat.text === 'A moment. Two it is.')
    expect(page.chat.errors).toEqual([])
  })

  it('is requested once for a message sent while the chat is resumed, and the run continues', async () => {
    const { handler, model, untilRequest } = openServer({ tools: [clientTool('pick')] })
    const gate = latch()
    const later: Handler = async (request) => {
      if (request.method === 'GET') await gate.opened
      return handler(request)
    }
    const page = openPage(later, {}, { sendAutomaticallyWhen })
    const resumed = page.chat.resumeStream()
    const sending = page.chat.sendMessage({ text: 'Pick.' })
    await untilRequest()
    gate.open()
    await settled()
    expect(page.chat.status).toBe('submitted')
    model.pending?.answer({ toolCalls: [call('c1', 'pick')] })
    await until(() => page.calls.length > 0)
    void page.chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 2 })
    await untilRequest(2)
    model.pending?.answer({ text: 'Two it is.' })
    await Promise.all([sending, resumed])
    expect([page.calls.length, page.chat.text, page.chat.status]).toEqual([1, 'Two it is.', 'ready'])
  })

  it('is not requested again during a replay if it has its result', async () => {
    const { handler, model, untilRequest } = openServer({ tools: [clientTool('pick')] })
    const before = openPage(handler, {}, { sendAutomaticallyWhen })
    const sending = before.chat.sendMessage({ text: 'Pick.' })
    await untilRequest()
    model.pending?.answer({ toolCalls: [call('c1', 'pick')] })
    await sending
    void before.chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 2 })
    await untilRequest(2)
    const page = openPage(handler, {}, { messages: await before.transport.readMessages('c') })
    const resumed = page.chat.resumeStream()
    await until(() => page.chat.lastMessage?.role === 'assistant')
    model.pending?.answer({ text: 'Two it is.' })
    await resumed
    expect([page.chat.text, page.calls]).toEqual(['Two it is.', []])
  })

  it('is not requested again after the connection breaks if the page received it', async () => {
    const gate = latch()
    const slow = tool('slow', () => gate.opened)
    const { handler, model, untilRequest } = openServer({ tools: [clientTool('pick'), slow] })
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'Pick.' })
    await untilRequest()
    model.pending?.answer({ toolCalls: [call('c1', 'pick'), call('c2', 'slow')] })
    await until(() => page.calls.length === 2)
    page.network.cut()
    await sending
    const resumed = page.chat.resumeStream()
    gate.open()
    await resumed
    expect(page.calls.map(({ toolCallId }) => toolCallId)).toEqual(['c1', 'c2'])
    expect(page.chat.lastMessage?.parts.filter((part) => 'toolCallId' in part)).toMatchObject([
      { type: 'tool-pick', state: 'input-available' },
      { type: 'tool-slow', state: 'output-available' },
    ])
  })

  it('is not requested while another approval is pending, and the approval is shown', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, model, untilRequest } = openServer({ tools: [clientTool('pick'), pay] })
    const before = openPage(handler)
    const sending = before.chat.sendMessage({ text: 'Pay.' })
    await untilRequest()
    model.pending?.answer({ toolCalls: [call('c1', 'pick'), call('c2', 'pay', { to: 'ann' })] })
    await sending
    const page = openPage(handler, {}, { messages: await before.transport.readMessages('c') })
    await page.chat.resumeStream()
    const shown = page.chat.lastMessage?.parts.filter((part) => 'toolCallId' in part)
    expect(shown).toMatchObject([
      { type: 'tool-pick', state: 'input-available' },
      { type: 'tool-pay', state: 'approval-requested', input: { to: 'ann' } },
    ])
    expect(page.calls.map(({ toolName }) => toolName)).toContain('pick')
  })

  it('is answered after an earlier message, without the other parts of that message', async () => {
    const page = openPage(async () => Response.json({ error: { code: 'x', message: 'x' } }, { status: 400 }))
    const parts = [
      { type: 'step-start' },
      { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' },
      { type: 'step-start' },
      { type: 'text', text: 'May I?' },
      {
        type: 'tool-pay',
        toolCallId: 'c2',
        state: 'approval-responded',
        input: {},
        approval: { id: 'x', approved: true },
      },
    ]
    const messages = [
      { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] },
      { id: 'a1', role: 'assistant', parts },
      { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'And then?' }] },
    ]
    await refusal(
      page.transport.sendMessages({
        chatId: 'c',
        trigger: 'submit-message',
        messageId: 'a1',
        messages,
        abortSignal: undefined,
      }),
    )
    expect(page.network.requests[0]?.body.messages).toEqual([{ ...messages[1], parts: [parts[2], parts[4]] }])
  })
})

describe('a refused request', () => {
  const sending = (handler: Handler): Promise<ChatError> =>
    refusal(
      openPage(handler).transport.sendMessages({
        chatId: 'c',
        trigger: 'submit-message',
        messageId: undefined,
        messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: ' ' }] as never }],
        abortSignal: undefined,
      }),
    )

  it('throws an error with the server’s code, message and subject', async () => {
    const { handler } = openServer()
    expect(await sending(handler)).toMatchObject({
      name: 'ChatError',
      code: 'invalid_input',
      status: 400,
      subject: 'messages[0]',
      message: 'messages[0] is empty. Add text or a file.',
    })
  })

  it.each([
    [413, 'The message is too large.'],
    [401, 'You are not signed in.'],
    [418, 'The server refused the request (418).'],
    [500, 'The server failed (500). Try again later.'],
  ])('throws a readable message if a proxy returns %d', async (status, message) => {
    const error = await sending(async () => new Response('<html>nginx</html>', { status }))
    expect(error).toMatchObject({ code: 'http_error', status, message })
  })

  it('names the versions of ai that the server accepts', async () => {
    const { handler } = openServer()
    const response = await handler(
      new Request('http://chat.test/api/chat/c', { headers: { 'x-ai-sdk': '8.1.0' } }),
    )
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect([response.status, error.code]).toEqual([400, 'unknown_client'])
    expect(error.message).toMatch(/ai 6 and ai 7, but the header x-ai-sdk is "8\.1\.0"/)
  })
})

it.each(['v6', 'v7'] as const)(
  'a server of protocol %s answers the client in that protocol, and no text appears twice',
  async (other) => {
    const { handler, model, untilRequest, clock } = openServer({}, { protocol: other })
    const page = openPage(handler)
    const sending = page.chat.sendMessage({ text: 'Go.' })
    await untilRequest()
    model.pending?.delta('Half of')
    await settled()
    model.pending?.fail()
    await passing(clock, untilRequest(2))
    model.pending?.answer({ text: 'Whole.' })
    await sending
    expect(page.network.requests[0]?.headers.get('x-ai-sdk')).toBe(protocol === 'v6' ? '6' : '7')
    expect([page.chat.text, page.chat.errors]).toEqual(['Whole.', []])
  },
)
