import { aguiHandler } from '../../src/agui/index.js'
import { memoryStore } from '../../src/index.js'
import { chatHandler, type FileIds } from '../../src/ui/index.js'
import type { PageFileOptions } from '../../src/web/page-files.js'
import { type Stage, stage } from '../support/play.js'
import { text } from '../support/tools.js'

interface Answered {
  status: number
  body: string
  theatre: Stage
}

/** Sends one message part in the format of a protocol. */
type Send = (input: { address?: string; id?: string }, options?: PageFileOptions) => Promise<Answered>

async function sent(
  serve: typeof chatHandler | typeof aguiHandler,
  body: object,
  options: PageFileOptions = {},
): Promise<Answered> {
  const theatre = await stage([text('A heron.')], { store: memoryStore() })
  const handler = serve({
    agent: theatre.agent,
    authorize: () => ({ prefix: 'ann', context: { user: 'Ann' } }),
    path: '/pages',
    onError: () => undefined,
    ...options,
  })
  const headers = { 'content-type': 'application/json' }
  const response = await handler(
    new Request('http://page.test/pages', { method: 'POST', headers, body: JSON.stringify(body) }),
  )
  return { status: response.status, body: await response.text(), theatre }
}

const look = { type: 'text', text: 'What is it?' }

const overChat =
  (mediaType: string): Send =>
  ({ address }, options) => {
    const parts = [look, { type: 'file', url: address, mediaType }]
    return sent(chatHandler, { id: 'c1', messages: [{ id: 'u1', role: 'user', parts }] }, options)
  }

const overAGUI =
  (type: string, mimeType: string): Send =>
  ({ address, id }, options) => {
    const source = id === undefined ? { type: 'url', value: address, mimeType } : { type: 'file', value: id }
    const content = [look, { type, source }]
    const messages = [{ id: 'u1', role: 'user', content }]
    return sent(aguiHandler, { threadId: 'c1', runId: 'r1', messages }, options)
  }

const pages: [string, Send, string][] = [
  ['a picture over chat', overChat('image/png'), 'messages[0].parts[1].url'],
  ['a document over chat', overChat('application/pdf'), 'messages[0].parts[1].url'],
  ['a picture over AG-UI', overAGUI('image', 'image/png'), 'messages[0].content[1].source.value'],
  ['a document over AG-UI', overAGUI('document', 'application/pdf'), 'messages[0].content[1].source.value'],
]

const refusal = (key: string) => ({ error: { code: 'invalid_input', key, message: expect.any(String) } })

describe.each(pages)('the address of %s', (_, send, key) => {
  it.each([
    'http://169.254.169.254/latest/meta-data',
    'http://2852039166/',
    'http://[::1]:8080/',
    'http://localhost/admin',
    'http:\\\\127.0.0.1\\',
    'http://ann:secret@example.com/',
    'https://',
  ])('is refused before anything is sent: %s', async (address) => {
    const { status, body, theatre } = await send({ address })
    expect([status, JSON.parse(body)]).toEqual([400, refusal(key)])
    expect(theatre.requests).toEqual([])
  })

  it('is sent normalized if its host is public', async () => {
    const { status, theatre } = await send({ address: 'HTTPS:\\\\Example.COM\\heron' })
    expect(status).toBe(200)
    expect(JSON.stringify(theatre.wire(0))).toContain('"https://example.com/heron"')
  })

  it('is accepted if the server lists its host', async () => {
    const options = { fileAddresses: ['10.1.0.0/16', 'cdn.example.com'] }
    const statuses = [
      'http://10.1.2.3/',
      'https://cdn.example.com/',
      'https://example.com/',
      'http://10.2.0.1/',
    ].map(async (address) => (await send({ address }, options)).status)
    expect(await Promise.all(statuses)).toEqual([200, 200, 400, 400])
  })
})

it('data is accepted regardless of fileAddresses', async () => {
  const data = 'data:image/png;base64,iVBORw0KGgo='
  const { status, theatre } = await overChat('image/png')({ address: data }, { fileAddresses: [] })
  expect(status).toBe(200)
  expect(JSON.stringify(theatre.wire(0))).toContain(data)
})

describe('a file id from a page', () => {
  const send = overAGUI('document', 'application/pdf')
  const key = 'messages[0].content[1].source.value'

  it('is refused unless the server maps ids', async () => {
    const { status, body, theatre } = await send({ id: 'file-of-somebody-else' })
    expect([status, JSON.parse(body)]).toEqual([400, refusal(key)])
    expect(theatre.requests).toEqual([])
  })

  it('is mapped by the server for this session and user', async () => {
    const requests: unknown[] = []
    const fileIds: FileIds = async (id, who) => {
      requests.push([id, who])
      return id === 'report' ? 'file-8Jq2' : null
    }
    const { status, theatre } = await send({ id: 'report' }, { fileIds })
    expect(status).toBe(200)
    expect(theatre.wire(0).at(-1)).toMatchObject({ content: [look, { file: { file_id: 'file-8Jq2' } }] })
    expect(requests).toEqual([['report', { session: 'ann:c1', prefix: 'ann', context: { user: 'Ann' } }]])
    const other = await send({ id: 'file-8Jq2' }, { fileIds })
    expect([other.status, JSON.parse(other.body)]).toEqual([400, refusal(key)])
    expect(other.theatre.requests).toEqual([])
  })

  it('is refused without a lookup if it is too long', async () => {
    const fileIds = (): string => 'file-8Jq2'
    expect((await send({ id: 'x'.repeat(501) }, { fileIds })).status).toBe(400)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('secret-host is away')
      },
    ],
    ['returns no id', () => 7 as never],
  ])('is a server error if fileIds %s', async (_, fileIds) => {
    const { status, body, theatre } = await send({ id: 'report' }, { fileIds })
    expect(status).toBe(500)
    expect(body).not.toContain('secret-host')
    expect(theatre.requests).toEqual([])
  })
})

it.each([
  [{ fileAddresses: 'public' }, 'fileAddresses'],
  [{ fileAddresses: ['http://example.com/'] }, 'fileAddresses[0]'],
  [{ fileIds: new Map() }, 'fileIds'],
])('invalid options are refused when the handler is created: %j', async (options, subject) => {
  const { agent } = await stage([text('Never.')], { store: memoryStore() })
  for (const serve of [chatHandler, aguiHandler]) {
    const make = () => serve({ agent, authorize: 'none', ...(options as PageFileOptions) })
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_config', subject }))
  }
})
