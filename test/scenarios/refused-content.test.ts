import {
  type AgentEvent,
  createAgent,
  memoryStore,
  openaiChat,
  patternShield,
  restoreSession,
  createSession,
  toolContent,
  withFallbacks,
} from '../../src/index.js'
import type { RecordedRequest, Turn, TurnFunction } from '../../src/rehearsal/index.js'
import { again, played, stage, textOf } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

const png = 'iVBORw0KGgoAAAANSUhEUg=='
const picture = { type: 'image' as const, image: png, mediaType: 'image/png' }
const refusal = (message: string, more: object = {}): Turn => ({
  status: 400,
  error: { message, type: 'invalid_request_error', ...more },
})
const badPicture = refusal('Invalid image data: the payload could not be decoded.')
const noPictures = refusal('this model does not support image input')
const flagged = refusal("The prompt triggered Azure OpenAI's content management policy.", {
  code: 'content_filter',
})

/** Answers, but rejects each request that contains this text. */
function refuses(words: RegExp, turn: Turn, answer: Turn | TurnFunction = text('Fine.')): TurnFunction {
  return (request: RecordedRequest) =>
    words.test(JSON.stringify(request.sent)) ? turn : typeof answer === 'function' ? answer(request) : answer
}
const screenshot = () => tool('screenshot', () => toolContent([picture]))
const sent = (request: RecordedRequest | undefined): string => JSON.stringify(request?.sent)
const warnings = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) =>
    event.type === 'warning' && event.code === 'content_refused' ? [event.message] : [],
  )

describe.each(['chat', 'responses'] as const)('over %s', (api) => {
  describe.each([true, false])('stream: %s', (stream) => {
    it("a tool's picture that the provider refuses is replaced by text, once and for the session", async () => {
      const store = memoryStore()
      const turns = [call('screenshot'), refuses(/base64/, badPicture), refuses(/base64/, badPicture)]
      const opened = await stage(turns, { api, stream, store, tools: [screenshot()] }, 'repeatLast')
      const first = opened.run('Look.', { session: 's' })
      const result = await first.end(3)
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Fine.' })
      expect(warnings(first.events)).toEqual([
        expect.stringContaining('The provider refused images, audio or documents'),
      ])
      // The store holds the actual events.
      expect(result.messages[2]).toMatchObject({ media: [{ type: 'image_url' }] })
      const second = await opened.run('And now?', { session: 's' }).end(4)
      expect(second.state).toBe('COMPLETED')
      expect(sent(opened.requests[3])).not.toContain('base64')
      expect(sent(opened.requests[3])).toContain('[image: image/png')
    })
  })
})

describe('a model that accepts no pictures', () => {
  it('receives no later picture', async () => {
    const opened = await stage([refuses(/base64/, noPictures)], { store: memoryStore() }, 'repeatLast')
    await opened.run([picture], { session: 's' }).end(2)
    const other = { ...picture, image: `${png.slice(0, -4)}AAAA` }
    const result = await opened.run([{ type: 'text', text: 'And this?' }, other], { session: 's' }).end(3)
    expect(result.state).toBe('COMPLETED')
    expect(sent(opened.requests[2])).toContain('omitted: the model does not accept it')
  })

  it('is skipped for one that accepts them, immediately in later runs', async () => {
    const opened = await stage([refuses(/base64/, noPictures)], {}, 'repeatLast')
    const { url: baseURL } = opened.rehearsal
    const seeing = await stage([text('A heron.')], {}, 'repeatLast')
    const model = withFallbacks([
      openaiChat({ model: 'blind', baseURL, apiKey: 'none' }),
      openaiChat({ model: 'seeing', baseURL: seeing.rehearsal.url, apiKey: 'none' }),
    ])
    const agent = createAgent({ model, store: memoryStore() })
    expect(await agent.run([picture], { session: 's' }).result).toMatchObject({ output: 'A heron.' })
    expect(await agent.run('Sure?', { session: 's' }).result).toMatchObject({ output: 'A heron.' })
    expect(opened.requests).toHaveLength(1)
    expect(sent(seeing.requests[1])).toContain('base64')
  })

  it('receives text if no other model accepts them', async () => {
    const opened = await stage([refuses(/base64/, noPictures)], {}, 'repeatLast')
    const { url: baseURL } = opened.rehearsal
    const blind = (model: string) => openaiChat({ model, baseURL, apiKey: 'none' })
    const agent = createAgent({ model: withFallbacks([blind('one'), blind('two')]) })
    expect(await agent.run([picture]).result).toMatchObject({ state: 'COMPLETED', output: 'Fine.' })
    expect(opened.requests.map(({ body }) => body.model)).toEqual(['one', 'two', 'one'])
  })
})

it('only the new picture is omitted if an older one was accepted', async () => {
  const good = { ...picture, image: `${png.slice(0, -4)}AAAA` }
  const opened = await stage([refuses(new RegExp(png), badPicture)], { store: memoryStore() }, 'repeatLast')
  await opened.run([good], { session: 's' }).end(1)
  expect(await opened.run([picture], { session: 's' }).end(3)).toMatchObject({ state: 'COMPLETED' })
  expect(sent(opened.requests[2])).toContain(good.image)
})

describe('a model that is configured without pictures', () => {
  it('refuses a question with a picture, but no later message', async () => {
    const opened = await stage([text('Fine.')])
    const { url: baseURL } = opened.rehearsal
    const model = openaiChat({ model: 'gpt-test', baseURL, apiKey: 'none', media: [] })
    const agent = createAgent({ model, store: memoryStore() })
    expect(await agent.run([picture], { session: 's' }).result).toMatchObject({
      state: 'ERROR',
      error: { code: 'unsupported_content' },
    })
    expect(await agent.run('Then without.', { session: 's' }).result).toMatchObject({ state: 'COMPLETED' })
  })

  it('reads a text file', async () => {
    const opened = await stage([text('In May.')])
    const { url: baseURL } = opened.rehearsal
    const model = openaiChat({ model: 'gpt-test', baseURL, apiKey: 'none', media: [] })
    const notes = {
      type: 'file' as const,
      data: new TextEncoder().encode('The offsite is in May.'),
      mediaType: 'text/plain',
      filename: 'notes.txt',
    }
    expect(await createAgent({ model }).run([notes]).result).toMatchObject({ state: 'COMPLETED' })
    expect(opened.wire(0).map(textOf).join()).toContain('The offsite is in May.')
  })
})

describe('flagged content', () => {
  it('a flagged question ends its run, and later runs omit it', async () => {
    const opened = await stage([refuses(/poison/, flagged)], { store: memoryStore() }, 'repeatLast')
    const first = await opened.run('How do I make poison?', { session: 's' }).end(1)
    expect(first).toMatchObject({
      state: 'ERROR',
      reason: 'provider_error',
      error: { code: 'content_filter' },
    })
    expect(await opened.run('What is 2 + 2?', { session: 's' }).end(2)).toMatchObject({ output: 'Fine.' })
    expect(opened.wire(1).map(textOf).join()).toContain('the provider refused it')
  })

  it('a flagged result is replaced by a line of text, and the run continues', async () => {
    const read = tool('read', () => 'All about poison.')
    const turns = [call('read'), refuses(/poison/, flagged), refuses(/poison/, flagged)]
    const { result, events, of } = await played(turns, { tools: [read] })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Fine.', steps: 2 })
    expect(warnings(events)).toHaveLength(1)
    expect(of('retry')).toEqual([])
    expect(result.messages[2]?.content).toBe('All about poison.')
  })

  it('the user message stays in every request, also after a tool call', async () => {
    const turns = [call('read'), flagged]
    const opened = await stage(turns, { tools: [tool('read', () => 'Nothing bad.')] }, 'repeatLast')
    const { state, reason } = await opened.run('Read the page.').end(3)
    expect([state, reason]).toEqual(['ERROR', 'provider_error'])
    for (const request of opened.requests) expect(sent(request)).toContain('Read the page.')
  })

  it('an old message is identified after two refused questions in a row, and restored if innocent', async () => {
    const opened = await stage([refuses(/poison|bomb/, flagged)], { store: memoryStore() }, 'repeatLast')
    await opened.run('I like herons.', { session: 's' }).end(1)
    await opened.run('Poison? poison!', { session: 's' }).end(2)
    // The request fails without the history as well, so the history is restored.
    await opened.run('A bomb?', { session: 's' }).end(4)
    expect(await opened.run('What do I like?', { session: 's' }).end(5)).toMatchObject({ output: 'Fine.' })
    expect(opened.wire(4).map(textOf).join()).toContain('I like herons.')
  })

  it('a history that another provider refuses is omitted', async () => {
    const opened = await stage([refuses(/herons/, flagged)], { store: memoryStore() }, 'repeatLast')
    const before = await stage([text('Noted.')], {}, 'repeatLast')
    const session = createSession()
    await before.agent.run('I like herons.', { session }).result
    await opened.agent.run('Hello?', { session }).result
    const result = await opened.agent.run('Still there?', { session }).result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Fine.' })
  })
})

describe('stored reasoning', () => {
  const unreadable = refusal('The encrypted content could not be verified.', {
    code: 'invalid_encrypted_content',
  })

  it.each([true, false])(
    'is sent up to the refused part, and new reasoning is sent (stream: %s)',
    async (stream) => {
      let old: RegExp | null = null
      const think: TurnFunction = (request) =>
        old?.test(sent(request)) ? unreadable : { reasoning: 'Thinking.', text: 'Hm.' }
      const opened = await stage([think], { api: 'responses', stream, store: memoryStore() }, 'repeatLast')
      await opened.run('One.', { session: 's' }).end(1)
      const secret = /"encrypted_content":"(\w+=*)"/
      await opened.run('Two.', { session: 's' }).end(2)
      const [, first = ''] = secret.exec(sent(opened.requests[1])) ?? []
      expect(first).not.toBe('')
      old = new RegExp(first)
      const run = opened.run('Three.', { session: 's' })
      expect(await run.end(4)).toMatchObject({ state: 'COMPLETED' })
      expect(warnings(run.events)).toEqual([expect.stringContaining('stored reasoning')])
      await opened.run('Four.', { session: 's' }).end(5)
      expect(sent(opened.requests[4])).toMatch(secret)
      // Reasoning that is rejected again is never sent again.
      old = secret
      await opened.run('Five.', { session: 's' }).end(7)
      await opened.run('Six.', { session: 's' }).end(8)
      expect(sent(opened.requests[7])).not.toMatch(secret)
    },
  )

  it('that the API does not accept is not sent again', async () => {
    const unknown = refusal('messages.1.assistant.reasoning_content: Extra inputs are not permitted')
    const opened = await stage(
      [refuses(/reasoning_content/, unknown, { reasoning: 'Thinking.', text: 'Hm.' })],
      {},
      'repeatLast',
    )
    const { url: baseURL } = opened.rehearsal
    const model = openaiChat({ model: 'm', baseURL, apiKey: 'none', echoReasoning: 'reasoning_content' })
    const agent = createAgent({ model, store: memoryStore() })
    for (const words of ['One.', 'Two.', 'Three.']) await agent.run(words, { session: 's' }).result
    expect(opened.requests).toHaveLength(4)
  })
})

describe('other failures', () => {
  it.each<[string, Turn, number]>([
    ['an invalid key', { status: 401, error: { message: 'Incorrect API key provided.' } }, 1],
    [
      'an unknown model',
      { status: 404, error: { message: 'The model gpt-4-vision does not exist.', code: 'model_not_found' } },
      1,
    ],
    ['a parameter', refusal("Invalid 'temperature'.", { param: 'temperature' }), 1],
    ['a request that is too long', refusal('prompt is too long: 210000 tokens > 200000 maximum'), 1],
    ['another invalid request', refusal('messages: roles must alternate.'), 1],
  ])('%s is not sent again', async (_name, turn, count) => {
    const opened = await stage([turn], {}, 'repeatLast')
    expect(await opened.run([picture]).end(count)).toMatchObject({ state: 'ERROR' })
  })

  it('a refusal that an omission does not resolve ends the run', async () => {
    const opened = await stage([badPicture], {}, 'repeatLast')
    expect(await opened.run([picture]).end(2)).toMatchObject({ state: 'ERROR', reason: 'provider_error' })
  })

  it('nothing is omitted without such content', async () => {
    const opened = await stage([badPicture], {}, 'repeatLast')
    expect(await opened.run('Words alone.').end(1)).toMatchObject({ state: 'ERROR' })
  })
})

describe('with other features', () => {
  it('a second attempt is paid for, and limits apply', async () => {
    const usage = { input: 100, output: 10 }
    const turns = [call('screenshot', {}, { usage }), badPicture, text('Fine.', { usage })]
    const { result } = await played(turns, { tools: [screenshot()], limits: { tokenBudget: 150 } })
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', steps: 2, usage: { totalTokens: 220 } })
  })

  it('attempts at temporary failures are counted separately', async () => {
    const retry = { maxAttempts: 2, baseDelayMs: 1 }
    const opened = await stage([badPicture, { status: 503 }, text('Fine.')], { retry })
    expect(await opened.run([picture]).skipBackOff().end(3)).toMatchObject({ state: 'COMPLETED' })
  })

  it('the final answer at a limit is requested again, too', async () => {
    const turns = [call('screenshot'), badPicture, text('Last words.')]
    const { result } = await played(turns, {
      tools: [screenshot()],
      limits: { maxSteps: 1, onLimit: 'conclude' },
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: 'Last words.' })
  })

  it('another process, a fork and a session without a store remember the omission', async () => {
    const store = memoryStore()
    const opened = await stage([refuses(/base64/, badPicture)], { store }, 'repeatLast')
    await opened.run([picture], { session: 's' }).end(2)
    const other = again(opened, { store })
    await other.run('More.', { session: 's' }).result
    const fork = await other.fork('s')
    await other.run('More.', { session: fork }).result
    expect(opened.requests).toHaveLength(4)
    const plain = again(opened)
    const session = createSession()
    await plain.run([picture], { session }).result
    await plain.run('More.', { session: restoreSession(JSON.parse(JSON.stringify(session))) }).result
    expect(opened.requests).toHaveLength(7)
    expect([2, 3, 5, 6].map((at) => sent(opened.requests[at])).join()).not.toContain('base64')
  })

  it('a sub-agent omits content from its own session', async () => {
    const turns = [
      call('screenshot'),
      refuses(/base64/, badPicture, text('Seen.')),
      refuses(/base64/, badPicture, text('Seen.')),
    ]
    const child = await stage(turns, { tools: [screenshot()] })
    const look = child.agent.asTool({ name: 'look', description: 'Looks.' })
    const { result } = await played([call('look', { task: 'Look.' }), text('Done.')], { tools: [look] })
    expect(child.requests).toHaveLength(3)
    expect(result).toMatchObject({ state: 'COMPLETED' })
    expect(result.messages[2]).toMatchObject({ content: 'Seen.' })
  })

  it('output shields screen the words of the provider', async () => {
    const shield = patternShield({ name: 'words', patterns: [/decoded/], action: 'block' })
    const opened = await stage([badPicture, text('Fine.')], { shields: { output: [shield] } })
    const run = opened.run([picture])
    expect(await run.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(warnings(run.events)).toHaveLength(1)
    expect(JSON.stringify(run.events)).not.toContain('decoded')
  })
})
