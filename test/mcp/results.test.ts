import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json, JsonObject } from '../../machines/agent/json.js'
import { ToolContent } from '../../src/core/tools/tool-content.js'
import { type AgentOptions, memoryStore, secretsShield } from '../../src/index.js'
import { openRecord } from '../../src/core/sessions/log/log-record.js'
import { stage, textOf } from '../support/play.js'
import { faults } from '../support/record-faults.js'
import { call, text } from '../support/tools.js'
import { failureOf, odd, use } from './support.js'

describe('the result of a call', () => {
  const png = { type: 'image', mimeType: 'image/png', data: 'AAAA' }

  it.each<[string, JsonObject, unknown]>([
    [
      'texts one below the other',
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      'a\nb',
    ],
    [
      'an image of a type that models do not accept, by type and size',
      { content: [{ ...png, mimeType: 'image/svg+xml' }] },
      '[image: image/svg+xml, 3 bytes]',
    ],
    ['an invalid image', { content: [{ ...png, data: 'http://x' }] }, '[image: image/png, 6 bytes]'],
    [
      'audio by type and size, without the padding',
      { content: [{ type: 'audio', mimeType: 'audio/ogg', data: 'AAA=' }] },
      '[audio: audio/ogg, 2 bytes]',
    ],
    [
      'a text resource, whole',
      {
        content: [{ type: 'resource', resource: { uri: 'file:///a', mimeType: 'text/plain', text: 'Hi.' } }],
      },
      '[resource: file:///a, text/plain, 3 characters]\nHi.',
    ],
    [
      'a binary resource, by size',
      { content: [{ type: 'resource', resource: { uri: 'file:///a', blob: 'AA==' } }] },
      '[resource: file:///a, unknown type, 1 bytes]',
    ],
    [
      'a link to a resource',
      { content: [{ type: 'resource_link', uri: 'file:///a', name: 'A', mimeType: 'text/plain', size: 7 }] },
      '[resource: A, file:///a, text/plain, 7 bytes]',
    ],
    ['structured content unchanged', { content: [], structuredContent: { a: 1 } }, { a: 1 }],
    [
      'the text and not the equal structured content',
      { content: [{ type: 'text', text: 'one' }], structuredContent: { a: 1 } },
      'one',
    ],
    [
      'content of an unknown type, by its name',
      { content: [{ type: 'smell' }] },
      "[content of type 'smell']",
    ],
    ['invalid parts', { content: [null, 3, {}] }, Array(3).fill("[content of type 'unknown']").join('\n')],
    ['nothing', { content: [] }, undefined],
    ['content that is a plain string', { content: 'text' }, 'text'],
    ['parts that are plain strings', { content: ['a', { type: 'text', text: 'b' }] }, 'a\nb'],
    ['a text that equals a value as JSON', { content: [{ type: 'text', text: { a: 1 } }] }, '{"a":1}'],
    [
      'structured content after an empty text',
      { content: [{ type: 'text', text: ' \n' }], structuredContent: { a: 1 } },
      { a: 1 },
    ],
    [
      'no structured content that is null',
      { content: [{ type: 'text', text: '' }], structuredContent: null },
      '',
    ],
  ])('shows %s', async (_, result, expected) => {
    const server = await odd('results')
    expect(await use(server, 'results_answer', { result })).toEqual(expected)
  })

  it('contains pictures, audio and documents for models that accept them, and a line of text for each', async () => {
    const server = await odd('results')
    const content = [
      png,
      { type: 'audio', mimeType: 'audio/wav', data: 'AAA=' },
      { type: 'resource', resource: { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: 'AA==' } },
    ]
    const result = await use(server, 'results_answer', { result: { content, structuredContent: { a: 1 } } })
    if (!(result instanceof ToolContent)) throw new Error('It is more than words.')
    expect(result.mediaOptional).toBe(true)
    expect(result.media).toEqual([
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'input_audio', input_audio: { data: 'AAA=', format: 'wav' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==' } },
    ])
    expect(result.text.replaceAll(/#\w+/g, '#')).toBe(
      [
        '{"a":1}',
        '[image: image/png, 3 bytes, #]',
        '[audio: audio/wav, 2 bytes, #]',
        '[resource: file:///a.pdf, application/pdf, 1 bytes]',
        '[file: application/pdf, 1 bytes, #]',
      ].join('\n'),
    )
  })

  it.each<[string, JsonObject, object]>([
    [
      'of type image/jpg',
      { ...png, mimeType: 'image/jpg' },
      { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,AAAA' } },
    ],
    [
      'of a type with parameters',
      { ...png, mimeType: 'IMAGE/PNG; x=1' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ],
    [
      'with line breaks',
      { ...png, data: 'AA\r\nAA\n' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ],
    [
      'in the URL alphabet',
      { ...png, data: '-_-_' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,+/+/' } },
    ],
    [
      'as a data: address',
      { type: 'image', data: 'data:image/webp;base64,AAAA' },
      { type: 'image_url', image_url: { url: 'data:image/webp;base64,AAAA' } },
    ],
    [
      'that is audio under another name',
      { type: 'audio', mimeType: 'audio/wave', data: 'AA\nA=' },
      { type: 'input_audio', input_audio: { data: 'AAA=', format: 'wav' } },
    ],
  ])('contains a picture %s', async (_, part, expected) => {
    const server = await odd('results')
    const result = await use(server, 'results_answer', { result: { content: [part as Json] } })
    if (!(result instanceof ToolContent)) throw new Error('It is more than words.')
    expect(result.media).toEqual([expected])
  })

  it.each<[string, JsonObject, string]>([
    ['its text', { isError: true, content: [{ type: 'text', text: 'No such file.' }] }, 'No such file.'],
    ['its structured content', { isError: true, structuredContent: { a: 1 } }, '{"a":1}'],
    ['a default sentence if it is empty', { isError: true }, 'The server gave no reason.'],
  ])('that is an error fails with %s', async (_, result, message) => {
    const server = await odd('results')
    const failure = await failureOf(use(server, 'results_answer', { result }))
    expect(failure).toMatchObject({ name: 'ToolError', kind: 'failed', message })
  })

  it('that the protocol refuses fails with the name and the error of the server', async () => {
    const server = await odd('results')
    const failure = await failureOf(use(server, 'results_refuse', { message: 'Rate limit reached.' }))
    expect(failure.message).toBe("The MCP server 'results': Rate limit reached.")
  })
})

describe('structured content for the app', () => {
  const sent = {
    content: [{ type: 'text', text: 'one' }],
    structuredContent: { a: 1 },
    _meta: { 'shop/trace': 'zebra', 'io.modelcontextprotocol/serverInfo': { name: 'x' } },
  }
  const meta = { _meta: { 'shop/trace': 'zebra' }, structuredContent: { a: 1 } }

  async function playResult(result: JsonObject, shields: AgentOptions['shields'] = {}) {
    const server = await odd('results')
    const store = memoryStore()
    const turns = [call('results_answer', { result }), text('Done.')]
    const theatre = await stage(turns, { tools: [server], store, shields })
    const play = theatre.run('Go.', { session: 's' })
    const { messages } = await play.end(2)
    const watched: unknown[] = []
    for await (const event of theatre.agent.watch('s'))
      if (event.type === 'tool_result') watched.push(event.appData)
    const appValues = play.of('tool_result').map(({ appData }) => appData)
    const read = theatre.wire(1).filter(({ role }) => role === 'tool')
    const transcript = messages.filter(({ role }) => role === 'tool')
    return { appValues, watched, read, transcript, faults: store.read('s').flatMap(faultsOf) }
  }
  const faultsOf = (record: { seq: number; at: number; data: string }, i: number): string[] =>
    faults({ seq: record.seq, at: record.at, ...openRecord(record as never, i, 's') })

  it('is in the result event and in the log, and the model does not read it', async () => {
    const { appValues: appData, watched, read, transcript, faults: wrong } = await playResult(sent)
    expect([appData, watched]).toEqual([[meta], [meta]])
    expect(read.map(textOf)).toEqual(['one'])
    expect(JSON.stringify(transcript)).not.toContain('zebra')
    expect(wrong).toEqual([])
  })

  it('is dropped if shields screen results, or if it is too long', async () => {
    const screened = await playResult(sent, { toolOutput: [secretsShield()] })
    const long = await playResult({ ...sent, _meta: { 'shop/trace': 'x'.repeat(70_000) } })
    expect([screened.appValues, screened.watched, long.appValues]).toEqual([
      [undefined],
      [undefined],
      [undefined],
    ])
    expect(long.read.map(textOf)).toEqual(['one'])
  })
})

describe('a slow call', () => {
  it('reports its progress, up to a thousand times', async () => {
    const server = await odd('results', { timeoutMs: 200 })
    const seen: unknown[] = []
    const reports = Array.from({ length: 1200 }, (_, i) => ({ progress: i, total: 1200, message: `${i}` }))
    await failureOf(use(server, 'results_hang', { reports }, { progress: (value) => void seen.push(value) }))
    expect(seen).toEqual(reports.slice(0, 1000))
  })

  it('reports at most a thousand characters of each message', async () => {
    const server = await odd('results', { timeoutMs: 200 })
    const seen: unknown[] = []
    const reports = [{ progress: 1, message: 'x'.repeat(100_000) }]
    await failureOf(use(server, 'results_hang', { reports }, { progress: (value) => void seen.push(value) }))
    expect(seen).toEqual([{ progress: 1, message: `${'x'.repeat(999)}…` }])
  })

  it('ends with a transient error after timeoutMs without progress, and is cancelled at the server', async () => {
    const server = await odd('results', { timeoutMs: 100 })
    const failure = await failureOf(use(server, 'results_hang'))
    expect(failure).toMatchObject({ name: 'ToolError', kind: 'transient' })
    expect(failure.message).toContain("The MCP server 'results' reported no progress for 100 ms.")
    expect(await use(server, 'results_cancelled')).toBe('1')
  })

  it('is cancelled at the server when the run is cancelled', async () => {
    const server = await odd('results')
    const controller = new AbortController()
    const progress = (): void => controller.abort(new Error('Enough.'))
    await failureOf(use(server, 'results_hang', {}, { signal: controller.signal, progress }))
    expect(await use(server, 'results_cancelled')).toBe('1')
  })
})

describe('the child process', () => {
  it('receives the configured variables and folder, and no other secrets of this process', async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'mcp-')))
    process.env.NOT_FOR_SERVERS = 'secret'
    try {
      const server = await odd('results', { env: { GIVEN: 'yes' }, cwd: folder })
      const { env, cwd } = JSON.parse(String(await use(server, 'results_env')))
      expect(env).toMatchObject({ GIVEN: 'yes', PATH: process.env.PATH })
      expect(env).not.toHaveProperty('NOT_FOR_SERVERS')
      expect(cwd).toBe(folder)
    } finally {
      delete process.env.NOT_FOR_SERVERS
      await rm(folder, { recursive: true })
    }
  })

  it('has exited when close resolves', async () => {
    const server = await odd('dies')
    const pid = Number(await use(server, 'mortal_pid'))
    await server.close()
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })
})
