import {
  type AgentOptions,
  createAgent,
  defineShield,
  defineTool,
  withFallbacks,
  type MediaKind,
  memoryStore,
  openaiChat,
  openaiResponses,
  patternShield,
  type RunInput,
  toolContent,
} from '../../src/index.js'
import { distant } from '../support/distant.js'
import { type Stage, stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

const png = 'iVBORw0KGgo='
const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0))
const picture = { type: 'image', image: bytes } as const
const url = `data:image/png;base64,${png}`

/** The request's full content in the API's format. */
function sent(theatre: Stage, index: number): string {
  return JSON.stringify(theatre.requests.at(index)?.sent)
}

const screenshot = (
  parts: Parameters<typeof toolContent>[0] = [{ type: 'text', text: 'The page:' }, picture],
) => tool('screenshot', () => toolContent(parts), { readOnly: true })

describe("the user's message", () => {
  const inputs: [what: string, input: RunInput][] = [
    ['parts', [{ type: 'text', text: 'What is this?' }, picture]],
    [
      'a data address',
      [
        { type: 'text', text: 'What is this?' },
        { type: 'image', image: url },
      ],
    ],
    [
      'base64',
      [
        { type: 'text', text: 'What is this?' },
        { type: 'file', data: png, mediaType: 'image/png' },
      ],
    ],
    ['a message of parts', [{ content: [{ type: 'text', text: 'What is this?' }, picture] }]],
    [
      'a message in the format of chats',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
    ],
  ]

  it.each(inputs)('can be %s', async (_what, input) => {
    const theatre = await stage([text('A dot.')])
    const result = await theatre.run(input).end(1)
    expect(result.messages[0]).toMatchObject({
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url } },
      ],
    })
    expect(theatre.wire(0)).toMatchObject([{ content: [{ type: 'text' }, { image_url: { url } }] }])
  })

  it('contains audio and documents in the format of chats, for any input format', async () => {
    const theatre = await stage([text('Heard.')])
    const result = await theatre
      .run([
        { type: 'file', data: 'UklGRg==', mediaType: 'audio/wav' },
        {
          type: 'file',
          data: new Uint8Array([37, 80]).buffer,
          mediaType: 'application/pdf',
          filename: 'a.pdf',
        },
        { type: 'image', image: new URL('https://herons.test/heron.jpg') },
      ])
      .end(1)
    expect(result.messages[0]).toMatchObject({
      content: [
        { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,JVA=', filename: 'a.pdf' } },
        { type: 'image_url', image_url: { url: 'https://herons.test/heron.jpg' } },
      ],
    })
  })

  it.each([
    [[{ type: 'image', image: 'no picture' }], /input\.content\[0\]\.image must be bytes, base64/],
    [[{ type: 'file', data: png }], /input\.content\[0\]\.mediaType must be a media type/],
    [
      [{ type: 'video', data: png }],
      /input\.content\[0\]\.type must be one of text, image_url, input_audio, file, image/,
    ],
    [[{ type: 'text' }], /has the type text, but no valid text field/],
    [[{ type: 'image', image: new URL('file:///home/ann/heron.png') }], /image is a local file/],
    [[{ type: 'image', image: 'FILE:///heron.png' }], /image is a local file/],
    [[{ type: 'image_url', image_url: { url: 'file:///heron.png' } }], /content\[0\] is a local file/],
    [[{ type: 'image', image: new URL('blob:https://herons.test/1') }], /image must be bytes, base64/],
    [[{ type: 'image', image: 'https://her ons.test/' }], /image must be bytes, base64/],
    [[{ type: 'image', image: 'abcde' }], /image must be bytes, base64/],
    [[{ type: 'image', image: new Uint8Array() }], /image is empty/],
  ])('is refused as %j', (input, says) => {
    const agent = createAgent({ model: openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:1/v1' }) })
    expect(() => agent.run(input as RunInput)).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringMatching(says) }),
    )
  })
})

describe('a tool result', () => {
  it('contains pictures: in the message, in the event, and after the batch if results are text only', async () => {
    const theatre = await stage(
      [{ toolCalls: [{ name: 'screenshot' }, { name: 'screenshot' }] }, text('Two.')],
      {
        tools: [screenshot()],
      },
    )
    const play = theatre.run()
    const result = await play.end(2)
    const line = expect.stringMatching(/^The page:\n\[image: image\/png, 8 bytes, #[0-9a-f]{8}\]$/)
    expect(result.messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { content: line, media: [{ image_url: { url } }] },
      { content: line, media: [{ image_url: { url } }] },
    ])
    expect(play.of('tool_result')[0]).toMatchObject({ content: line, media: [{ image_url: { url } }] })
    expect(theatre.wire(1).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
    expect(theatre.wire(1).at(-1)?.content).toMatchObject([
      { type: 'text', text: expect.stringContaining('[image: image/png') },
      { type: 'image_url', image_url: { url } },
      { type: 'text' },
      { type: 'image_url' },
    ])
  })

  it('contains them directly over the Responses API', async () => {
    const theatre = await stage([call('screenshot'), text('One.')])
    const model = openaiResponses({ model: 'gpt-test', baseURL: theatre.rehearsal.url, apiKey: 'none' })
    const result = await createAgent({ model, tools: [screenshot()], clock: theatre.clock }).run('Go.').result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'One.' })
    const body = theatre.requests[1]?.sent as { input: object[] } | undefined
    expect(body?.input.at(-1)).toMatchObject({
      type: 'function_call_output',
      output: [{ type: 'input_text' }, { type: 'input_image', image_url: url }],
    })
  })

  it.each([
    ['a store', memoryStore()],
    ['an asynchronous store', distant(memoryStore())],
  ])('is there for the next run, in another process, from %s, and in a fork', async (_what, store) => {
    const theatre = await stage([call('screenshot'), text('One.'), text('Two.'), text('Three.')], {
      tools: [screenshot()],
      store,
    })
    await theatre.run('Go.', { session: 's' }).run.result
    const model = openaiChat({ model: 'gpt-test', baseURL: theatre.rehearsal.url, apiKey: 'none' })
    const other = createAgent({ model, tools: [screenshot()], store })
    await other.run('Again.', { session: 's' }).result
    await other.run('And again.', { session: await other.fork('s') }).result
    expect([sent(theatre, 2), sent(theatre, 3)].map((body) => body.split(png).length - 1)).toEqual([1, 1])
  })

  it('can be the output of the client', async () => {
    const client = defineTool({
      name: 'draw',
      description: 'Draws.',
      input: { type: 'object' },
      client: true,
    })
    const theatre = await stage([call('draw'), text('Nice.')], { tools: [client] })
    const play = theatre.run()
    const waiting = await play.rest()
    for (const one of waiting.pending ?? []) play.run.addToolOutput(one, toolContent([picture]))
    const result = await play.end(2)
    expect(result.messages[2]).toMatchObject({ role: 'tool', media: [{ image_url: { url } }] })
    expect(sent(theatre, 1)).toContain(png)
  })

  it('counts towards the window and missing usage', async () => {
    const turns = [call('screenshot'), text('One.', { usage: null })]
    const plain = await stage(turns, { tools: [tool('screenshot', () => 'The page:')] })
    const seen = await stage(turns, { tools: [screenshot()] })
    const [without, withIt] = await Promise.all(
      [plain, seen].map(async (theatre) => (await theatre.run().end(2)).usage),
    )
    expect((withIt?.inputTokens ?? 0) - (without?.inputTokens ?? 0)).toBeGreaterThan(700)
  })

  it('that is invalid or too large is an error that the model reads', async () => {
    const wrong = tool('screenshot', () => toolContent([{ type: 'image', image: 'no picture' }]))
    const theatre = await stage([call('screenshot'), text('Sorry.')], { tools: [wrong] })
    const result = await theatre.run().end(2)
    expect(result.messages[2]).toMatchObject({
      content: expect.stringContaining('parts[0].image must be bytes, base64'),
      data: { status: 'error' },
    })
    const huge = 'A'.repeat(28 * 1024 * 1024)
    expect(() => toolContent([{ type: 'image', image: huge }])).toThrow(/29 MB of base64; the maximum is 28/)
  })
})

describe('shields', () => {
  const csv = {
    type: 'file',
    data: btoa('name,code\nann,4711'),
    mediaType: 'text/csv',
    filename: 'codes.csv',
  } as const
  const block = patternShield({ name: 'codes', patterns: [/4711/], action: 'block' })
  const shielded = (shield: typeof block): Partial<AgentOptions> => ({
    tools: [screenshot([{ type: 'text', text: 'The codes:' }, csv, picture])],
    shields: { toolOutput: [shield] },
  })

  it('check the text in the files of a result, which stay unchanged or are withheld', async () => {
    const theatre = await stage([call('screenshot'), text('So.')], shielded(block))
    const play = theatre.run()
    const result = await play.end(2)
    expect(result.messages[2]).toMatchObject({
      content: expect.stringContaining('[Withheld: a shield refused'),
    })
    expect(result.messages[2]).not.toHaveProperty('media')
    expect(JSON.stringify([play.events, sent(theatre, 1)])).not.toContain(csv.data)
    expect(play.of('shield')).toMatchObject([{ point: 'toolOutput', shield: 'codes', action: 'block' }])
  })

  it('check the line of text for each picture, and can block by it', async () => {
    const noPictures = defineShield({
      name: 'no-pictures',
      check: (content) => ({ action: content.includes('[image:') ? 'block' : 'allow' }),
    })
    const theatre = await stage([call('screenshot'), text('So.')], shielded(noPictures))
    const result = await theatre.run().end(2)
    expect(result.messages[2]).not.toHaveProperty('media')
    expect(sent(theatre, 1)).not.toContain(png)
  })

  it('let allowed files through', async () => {
    const allow = patternShield({ name: 'codes', patterns: [/0815/], action: 'block' })
    const theatre = await stage([call('screenshot'), text('So.')], shielded(allow))
    const result = await theatre.run().end(2)
    expect(result.messages[2]).toMatchObject({ media: [{ type: 'file' }, { type: 'image_url' }] })
  })
})

describe('a model that does not accept pictures', () => {
  const cases: [what: string, media: MediaKind[], input: RunInput, says: RegExp][] = [
    ['a picture', [], [picture], /Message m1 contains an image, but gpt-test accepts text only/],
    [
      'a document',
      ['image', 'audio'],
      [{ type: 'file', data: png, mediaType: 'application/pdf' }],
      /a file, but gpt-test accepts text, image and audio/,
    ],
  ]

  it.each(cases)('does not receive %s', async (_what, media, input, says) => {
    for (const make of [openaiChat, openaiResponses]) {
      const theatre = await stage([text('Never.')])
      const model = make({ model: 'gpt-test', baseURL: theatre.rehearsal.url, apiKey: 'none', media })
      const result = await createAgent({ model }).run(input).result
      expect(result).toMatchObject({
        state: 'ERROR',
        error: { code: 'unsupported_content', message: expect.stringMatching(says), recoverable: false },
      })
      expect(theatre.requests).toHaveLength(0)
    }
  })

  it('does not receive the pictures of a tool, either', async () => {
    const theatre = await stage([call('screenshot'), text('Never.')])
    const model = openaiChat({ model: 'gpt-test', baseURL: theatre.rehearsal.url, apiKey: 'none', media: [] })
    const result = await createAgent({ model, tools: [screenshot()] }).run('Go.').result
    expect(result.error?.message).toMatch(/The result of the call call_1_1 contains an image/)
    expect(theatre.requests).toHaveLength(1)
  })

  it.each<[what: string, name: string, media: MediaKind[] | undefined, seen: boolean]>([
    ['is declared to accept none', 'gpt-4o', [], false],
    ['accepts other types', 'gpt-4o', ['audio'], false],
    ['is unknown', 'gpt-test', undefined, false],
    ['is declared to accept them', 'gpt-test', ['image'], true],
    ['is known to accept them', 'gpt-4o', undefined, true],
  ])('reads the text of a result that can be text, if it %s', async (_what, name, media, seen) => {
    const theatre = await stage([call('screenshot'), call('screenshot'), text('Done.')], {}, 'loop')
    const parts = [{ type: 'text' as const, text: 'The page:' }, picture]
    const tools = [tool('screenshot', () => toolContent(parts, { mediaOptional: true }), { readOnly: true })]
    for (const make of [openaiChat, openaiResponses]) {
      const model = make({
        model: name,
        baseURL: theatre.rehearsal.url,
        apiKey: 'none',
        ...(media && { media }),
      })
      const store = memoryStore()
      const agent = createAgent({ model, tools, store })
      const result = await agent.run('Go.', { session: 's' }).result
      expect(result.state).toBe('COMPLETED')
      // The transcript keeps it for later readers.
      expect(JSON.stringify((await agent.replay('s')).messages)).toContain(url)
      const bodies = theatre.requests.slice(-3).map(({ sent: body }) => JSON.stringify(body))
      expect(bodies[2]?.includes(url)).toBe(seen)
      expect(bodies[2]).toMatch(/The page:.*\[image: image\/png, 8 bytes/)
    }
  })

  it('reads the text or the pictures, for any of several models', async () => {
    const theatre = await stage([call('screenshot'), { status: 503 }, text('Done.')])
    const make = (name: string, media: MediaKind[]) =>
      openaiChat({ model: name, baseURL: theatre.rehearsal.url, apiKey: 'none', media })
    const model = withFallbacks([make('blind', []), make('seeing', ['image'])])
    const tools = [tool('screenshot', () => toolContent([picture], { mediaOptional: true }))]
    expect(await createAgent({ model, tools }).run('Go.').result).toMatchObject({ state: 'COMPLETED' })
    expect(theatre.requests.map(({ body }, at) => [body.model, sent(theatre, at).includes(url)])).toEqual([
      ['blind', false],
      ['blind', false],
      ['seeing', true],
    ])
  })

  it('yields to the next model that accepts them', async () => {
    const theatre = await stage([text('A dot.')])
    const make = (name: string, media: MediaKind[]) =>
      openaiChat({ model: name, baseURL: theatre.rehearsal.url, apiKey: 'none', media })
    const model = withFallbacks([make('blind', []), make('seeing', ['image'])])
    const result = await createAgent({ model }).run([picture]).result
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'A dot.' })
    expect(theatre.requests.map(({ body }) => body.model)).toEqual(['seeing'])
  })

  it('reports a wrong option', () => {
    expect(() => openaiChat({ model: 'm', media: ['video'] as never })).toThrow(/media must be a list of/)
  })
})
