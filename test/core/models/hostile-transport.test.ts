import type { Socket } from 'node:net'
// oxlint-disable-next-line import/no-unassigned-import -- Jest cannot load it for two concurrent requests
import '../../../src/core/models/openai/chat-wire.js'
import { openaiChat } from '../../../src/core/models/openai/openai-provider.js'
import { ModelError } from '../../../src/core/models/provider.js'
import { chunk, raw, rawServer } from './raw-server.js'
import { overTransport, transports } from './transports.js'
import { sampledKinds } from '../../support/extent.js'

const piece = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`
const stream = 'content-type: text/event-stream'
const whole = JSON.stringify({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })
const sized = (body: string, length = Buffer.byteLength(body)) =>
  raw(`200 OK\ncontent-length: ${length}`, body)
const chunked = (...pieces: string[]) =>
  raw(`200 OK\n${stream}\ntransfer-encoding: chunked`, [...pieces.map(chunk), '0\r\n\r\n'].join(''))

/** The provider's result for one raw answer. `after` sets the fate of its socket. */
async function outcomeOf(answer: string | Buffer, after: 'stays' | 'ends' | 'breaks'): Promise<object> {
  await using server = await rawServer((socket: Socket) => {
    if (after === 'ends') socket.end(answer)
    else socket.write(answer, () => after === 'breaks' && socket.resetAndDestroy())
  })
  const model = openaiChat({ model: 'm', baseURL: server.baseURL, apiKey: 'none' })
  const request = { instructions: null, messages: [], nudges: [], tools: [], sampling: {}, extraBody: {} }
  const callbacks = {
    signal: new AbortController().signal,
    onDelta: () => undefined,
    onActivity: () => undefined,
  }
  try {
    return await model.request({ ...request, stream: true }, callbacks)
  } catch (error) {
    if (error instanceof ModelError) return error.failure
    throw error
  }
}

const hello = { text: 'Hello', complete: true }
const connection = { kind: 'transient', code: 'connection', status: null }

describe.each(sampledKinds(transports))('over %s,', (transport) => {
  overTransport(transport)

  test.each<[string, string | Buffer, 'stays' | 'ends' | 'breaks', object]>([
    ['chunks that stay open', chunked(piece('Hello', 'stop'), 'data: [DONE]\n\n'), 'stays', hello],
    ['chunks of one byte', chunked(...piece('Hello', 'stop').split('')), 'stays', hello],
    [
      'a chunk with an extension and a trailer',
      raw(
        `200 OK\n${stream}\ntransfer-encoding: chunked\ntrailer: x-sum`,
        `${chunk(piece('Hello', 'stop')).replace('\r\n', ';name=value\r\n')}0\r\nx-sum: 1\r\n\r\n`,
      ),
      'stays',
      hello,
    ],
    [
      'a body until the connection ends',
      raw(`200 OK\n${stream}\nconnection: close`, piece('Hello', 'stop')),
      'ends',
      hello,
    ],
    ['an answer of HTTP/1.0', sized(whole).replace('HTTP/1.1', 'HTTP/1.0'), 'ends', hello],
    ['one document', sized(whole), 'stays', hello],
    ['a byte order mark', sized(`\u{feff}${whole}`), 'stays', hello],
    ['early hints before the answer', `${raw('103 Early Hints\nlink: </x>')}${sized(whole)}`, 'stays', hello],
    ['no content', raw('204 No Content'), 'stays', { text: '', complete: false }],
    ['an empty body', sized(''), 'stays', { text: '', complete: false }],
    ['a stream without an end', chunked(piece('Hel')), 'stays', { text: 'Hel', complete: false }],
    ['headers in mixed case', raw(`200\nCoNtEnT-LeNgTh:   ${whole.length}   `, whole), 'stays', hello],

    ['no answer at all', '', 'ends', connection],
    ['a reset instead of an answer', '', 'breaks', connection],
    ['half of the headers', 'HTTP/1.1 200 OK\r\ncontent-ty', 'ends', connection],
    ['not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', 'ends', connection],
    ['headers without end', `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(4000)}`, 'ends', connection],
    ['a whole document that is shorter than announced', sized(whole, 999), 'ends', hello],
    ['a part of a document', sized(whole.slice(0, -3), 999), 'ends', connection],
    [
      'a reset after a complete answer',
      raw(`200 OK\n${stream}\ntransfer-encoding: chunked`, chunk(piece('Hello', 'stop'))),
      'breaks',
      hello,
    ],
    [
      'a reset in the blank line after a complete answer',
      raw(`200 OK\n${stream}\ncontent-length: 999`, piece('Hello', 'stop').trimEnd()),
      'breaks',
      hello,
    ],
    [
      'a reset in the middle',
      raw(`200 OK\n${stream}\ncontent-length: 999`, piece('Hel')),
      'breaks',
      { ...connection, partialText: 'Hel' },
    ],
    [
      'chunks without the last',
      raw(`200 OK\n${stream}\ntransfer-encoding: chunked`, chunk(piece('Hel'))),
      'ends',
      { ...connection, partialText: 'Hel' },
    ],
    [
      'a chunk without a length',
      raw(`200 OK\n${stream}\ntransfer-encoding: chunked`, `${chunk(piece('Hel'))}zz\r\n`),
      'stays',
      { ...connection, partialText: 'Hel' },
    ],

    [
      'an error without a body',
      raw('500 Oops\ncontent-length: 0'),
      'stays',
      { kind: 'transient', code: 'http_500', status: 500 },
    ],
    [
      'an error that breaks off',
      raw('503 Busy\ncontent-length: 99', '{"error":{"mess'),
      'ends',
      { kind: 'transient', code: 'http_503', status: 503 },
    ],
    [
      'a text as an error',
      raw('429 Slow\ncontent-length: 4\nretry-after-ms: 250', 'slow'),
      'stays',
      { kind: 'rate_limit', status: 429, retryAfterMs: 250 },
    ],
    [
      'a custom status',
      raw('599 What\ncontent-length: 2', '{}'),
      'stays',
      { kind: 'transient', code: 'http_599' },
    ],
  ])('%s', async (_name, answer, after, expected) => {
    expect(await outcomeOf(answer, after)).toMatchObject(expected)
  })

  test('a cut in the middle of a letter is one connection failure', async () => {
    const bytes = Buffer.from(raw(`200 OK\n${stream}\ncontent-length: 999`, piece('Grüße')))
    const outcome = await outcomeOf(bytes.subarray(0, bytes.indexOf('ü') + 1), 'breaks')
    expect(outcome).toMatchObject(connection)
  })

  test('the socket of an abandoned answer is closed, in any state', async () => {
    const model = (baseURL: string) => openaiChat({ model: 'm', baseURL, apiKey: 'none' })
    for (const answer of [
      '',
      raw(`200 OK\n${stream}`, piece('Hel')),
      raw('500 Oops\ncontent-length: 9', 'x'),
    ]) {
      const controller = new AbortController()
      let closed: Promise<unknown> | undefined
      await using server = await rawServer((socket) => {
        closed = new Promise((resolve) => socket.on('close', resolve))
        socket.write(answer, () => setImmediate(() => controller.abort(new Error('enough'))))
      })
      const pending = model(server.baseURL).request(
        {
          instructions: null,
          messages: [],
          nudges: [],
          tools: [],
          sampling: {},
          extraBody: {},
          stream: true,
        },
        { signal: controller.signal, onDelta: () => undefined, onActivity: () => undefined },
      )
      await expect(pending).rejects.toThrow('enough')
      await closed
    }
  })
})
