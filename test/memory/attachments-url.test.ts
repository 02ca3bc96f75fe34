import { gzipSync } from 'node:zlib'
import { loadAttachment } from '../../src/memory/attachments/load-attachment.js'
import { resolveAttachmentLimits } from '../../src/memory/attachments/attachment.js'
import type { ResolveHost } from '../../src/core/config/address-policy.js'
import { readUrl } from '../../src/memory/attachments/attachment-source.js'
import { refusal } from './support/refusal.js'
import { startServer, type TestServer } from './support/server.js'
import { tinyPdf } from './support/tiny-pdf.js'

const loopback = { allowAddresses: ['127.0.0.1'] }
let server: TestServer
let closed: () => void
const endlessClosed = new Promise<void>((resolve) => {
  closed = resolve
})

beforeAll(async () => {
  server = await startServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const send = (type: string, body: string | Uint8Array, headers = {}) =>
      response.writeHead(200, { 'content-type': type, ...headers }).end(body)
    switch (url.pathname) {
      case '/notes.md':
        return send('text/plain', '# Notes')
      case '/page':
      case '/':
        return send('text/html; charset=iso-8859-1', Buffer.from('<h1>Gr\u00FC\u00DFe</h1>', 'latin1'))
      case '/report.pdf':
        return send('application/octet-stream', tinyPdf('A report'))
      case '/missing-report.pdf':
      case '/login.md':
        return send('text/html', '<!doctype html><p>Log in')
      case '/gzip.txt':
        return send('text/plain', gzipSync('packed'), { 'content-encoding': 'gzip' })
      case '/bomb.txt':
        return send('text/plain', gzipSync(Buffer.alloc(30_000_000)), { 'content-encoding': 'gzip' })
      case '/broken.txt':
        return send('text/plain', gzipSync('packed').subarray(0, 20), { 'content-encoding': 'gzip' })
      case '/strange.txt':
        return send('text/plain', 'x', { 'content-encoding': 'gzip, gzip' })
      case '/announced.txt':
        response
          .writeHead(200, { 'content-length': 200_000_000, 'content-type': 'text/plain' })
          .flushHeaders()
        return
      case '/endless.txt': {
        const write = () => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        }
        response.writeHead(200, { 'content-type': 'text/plain' }).on('drain', write).on('close', closed)
        return write()
      }
      case '/cut.txt':
        response.writeHead(200, { 'content-length': 100 }).write('half', () => response.destroy())
        return
      case '/silent.txt':
        return
      case '/slow.txt':
        response.writeHead(200, { 'content-type': 'text/plain' }).write('the first byte')
        return
      case '/hop': {
        const left = Number(url.searchParams.get('n'))
        return response.writeHead(302, { location: left > 0 ? `/hop?n=${left - 1}` : '/notes.md' }).end()
      }
      case '/to':
        return response.writeHead(307, { location: url.searchParams.get('where') ?? '' }).end()
      default:
        return response.writeHead(404).end('no')
    }
  })
})

afterAll(async () => {
  await server.close()
})

const load = (path: string, options = {}) =>
  loadAttachment({ url: server.url + path }, { ...loopback, ...options })

describe('a URL', () => {
  it('has the type of its name before that of the response', async () => {
    expect(await load('/notes.md?token=secret')).toEqual({
      name: 'notes.md',
      mimeType: 'text/markdown',
      bytes: 7,
      text: '# Notes',
    })
    expect(await load('/report.pdf')).toMatchObject({ mimeType: 'application/pdf', text: 'A report' })
  })

  it('without an extension has the type and the charset of the response', async () => {
    expect(await load('/page')).toMatchObject({ name: 'page', mimeType: 'text/html', text: 'Grüße' })
    expect((await load('/')).name).toBe(new URL(server.url).host)
  })

  it('is requested uncompressed, and decompressed if it arrives compressed', async () => {
    expect((await load('/gzip.txt')).text).toBe('packed')
    expect(server.requests.at(-1)?.headers['accept-encoding']).toBe('identity')
  })

  it.each(['/missing-report.pdf', '/login.md'])('%s that returns a page instead is refused', async (path) => {
    await refusal(load(path), 'type_mismatch')
  })

  it.each([
    ['/nothing.txt', 'http_status'],
    ['/cut.txt', 'unreachable'],
    ['/broken.txt', 'unreachable'],
    ['/strange.txt', 'unreadable'],
  ] as const)('%s is an error: %s', async (path, code) => {
    await refusal(load(path), code)
  })

  it('of a closed port is unreachable', async () => {
    const gone = await startServer(() => {})
    await gone.close()
    const error = await refusal(loadAttachment({ url: `${gone.url}/a.txt` }, loopback), 'unreachable')
    expect(error.message).toBe('a.txt cannot be loaded (ECONNREFUSED). Check the URL.')
  })

  it.each([
    ['file:///etc/passwd', 'invalid_url'],
    ['ftp://example.com/a.txt', 'invalid_url'],
    ['data:text/plain,hi', 'invalid_url'],
    ['no url', 'invalid_url'],
    ['http://user:hunter2@example.com/a.txt', 'invalid_url'],
    ['http://user@example.com/a.txt', 'invalid_url'],
  ] as const)('%s is refused', async (url, code) => {
    expect((await refusal(loadAttachment({ url }), code)).message).not.toContain('hunter2')
  })
})

describe('a response that is too large or too slow', () => {
  it('is refused by its Content-Length before its body', async () => {
    await refusal(load('/announced.txt'), 'too_large')
  })

  it('is abandoned while it is read, and its connection closed', async () => {
    await refusal(load('/endless.txt', { maxBytes: 1_000_000 }), 'too_large')
    await endlessClosed
  })

  it('is refused if it decompresses to more than maxBytes', async () => {
    await refusal(load('/bomb.txt'), 'too_large')
  })

  it.each(['/silent.txt', '/slow.txt'])('%s is cancelled after timeoutMs', async (path) => {
    await refusal(load(path, { timeoutMs: 50 }), 'timeout')
  })

  it('is cancelled when the signal aborts, with its reason', async () => {
    const controller = new AbortController()
    const pending = load('/slow.txt', { signal: controller.signal })
    controller.abort('enough')
    await expect(pending).rejects.toBe('enough')
  })
})

test('a proxy of the environment is not used', async () => {
  const proxy = await startServer((_request, response) => response.writeHead(500).end())
  const savedEnv = { ...process.env }
  try {
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy']) process.env[name] = proxy.url
    process.env.NODE_USE_ENV_PROXY = '1'
    expect(await loadAttachment({ url: `${server.url}/notes.md` }, loopback)).toMatchObject({
      text: '# Notes',
    })
    expect(proxy.requests).toEqual([])
  } finally {
    process.env = savedEnv
    await proxy.close()
  }
})

describe('redirects', () => {
  it('are followed five times, not six', async () => {
    expect((await load('/hop?n=4', { root: '/' })).name).toBe('hop')
    await refusal(load('/hop?n=5'), 'too_many_redirects')
  })

  it.each([
    ['a private address', 'http://10.0.0.1/a.txt', 'blocked_address'],
    ['this machine', 'http://127.0.0.2/a.txt', 'blocked_address'],
    ['a file', 'file:///etc/passwd', 'invalid_url'],
    ['a password', 'http://a:b@example.com/', 'invalid_url'],
    ['an invalid URL', 'http://[', 'invalid_url'],
  ] as const)('to %s are refused', async (_, where, code) => {
    await refusal(load(`/to?where=${encodeURIComponent(where)}`), code)
  })

  it.each(['127.0.0.1', 'localhost'])('from a public name to %s are refused', async (host) => {
    // The public host is an allowed name. The redirect leads to the same server under another name.
    const resolve: ResolveHost = (_host, _options, done) => {
      done(null, [{ address: '127.0.0.1', family: 4 }])
    }
    const limits = resolveAttachmentLimits({ allowAddresses: ['public.example'] })
    const { port } = new URL(server.url)
    const where = encodeURIComponent(`http://${host}:${port}/notes.md`)
    const url = new URL(`http://public.example:${port}/to?where=${where}`)
    await refusal(readUrl(url, 'a', limits, new AbortController().signal, resolve), 'blocked_address')
  })
})

describe('addresses', () => {
  it.each([
    'http://127.0.0.1/a.txt',
    'http://2130706433/a.txt',
    'http://0x7f.1/a.txt',
    'http://0/a.txt',
    'http://[::1]/a.txt',
    'http://[::ffff:127.0.0.1]/a.txt',
    'http://[64:ff9b::7f00:1]/a.txt',
    'http://169.254.169.254/a.txt',
    'http://[fd00:ec2::254]/a.txt',
    'http://localhost/a.txt',
    'https://localhost:8443/a.txt',
  ])('%s is refused before anything is sent', async (url) => {
    await refusal(loadAttachment({ url }), 'blocked_address')
  })

  it('are allowed by address, block or name, and by nothing else', async () => {
    const { port } = new URL(server.url)
    const attachment = { url: `http://localhost:${port}/notes.md` }
    // If localhost also resolves to ::1, that address is tried first and abandoned.
    for (const allowAddresses of [['127.0.0.1'], ['10.0.0.0/8', '127.0.0.0/8'], ['LOCALHOST']]) {
      expect((await loadAttachment(attachment, { allowAddresses })).text).toBe('# Notes')
    }
    for (const allowAddresses of [['127.0.0.2'], ['10.0.0.0/8'], ['localhost.example']]) {
      await refusal(loadAttachment(attachment, { allowAddresses }), 'blocked_address')
    }
  })

  it('of a name are checked when the socket connects, so that a second lookup is not needed', async () => {
    let requestCount = 0
    const rebinding: ResolveHost = (_host, _options, done) => {
      requestCount += 1
      done(null, [{ address: requestCount === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }])
    }
    const limits = resolveAttachmentLimits(loopback)
    const { port } = new URL(server.url)
    const url = new URL(`http://rebinding.example:${port}/notes.md`)
    const { bytes } = await readUrl(url, 'a', limits, new AbortController().signal, rebinding)
    expect(new TextDecoder().decode(bytes)).toBe('# Notes')
    expect(requestCount).toBe(1)
    await refusal(readUrl(url, 'a', limits, new AbortController().signal, rebinding), 'blocked_address')
  })

  it('of a name are filtered: private ones are omitted, and public ones are used', async () => {
    const mixed: ResolveHost = (_host, _options, done) => {
      done(null, [
        { address: '10.0.0.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ])
    }
    const { port } = new URL(server.url)
    const url = new URL(`http://mixed.example:${port}/notes.md`)
    const signal = new AbortController().signal
    const { bytes } = await readUrl(url, 'a', resolveAttachmentLimits(loopback), signal, mixed)
    expect(bytes.length).toBe(7)
  })

  it('of a name that does not exist are an error', async () => {
    const nowhere: ResolveHost = (_host, _options, done) => {
      done(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
    }
    const url = new URL('http://nowhere.example/a.txt')
    const signal = new AbortController().signal
    const error = await refusal(
      readUrl(url, 'a.txt', resolveAttachmentLimits({}), signal, nowhere),
      'unreachable',
    )
    expect(error.message).toContain('ENOTFOUND')
  })
})
