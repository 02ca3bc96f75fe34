import { body, start } from './support.js'

const turns = [{ status: 429, retryAfter: 7 }, { text: 'Hi' }]

async function from(origin: string | null, origins?: string[]) {
  const rehearsal = await start({ scenario: { turns }, ...(origins && { origins }) })
  const headers = { 'content-type': 'text/plain', ...(origin !== null && { origin }) }
  const send = (method: string, more: Record<string, string> = {}) =>
    fetch(`${rehearsal.url}/chat/completions`, {
      method,
      headers: { ...headers, ...more },
      ...(method === 'POST' && { body: body() }),
    })
  return { rehearsal, send }
}

describe('a page of this machine', () => {
  it.each(['http://localhost:5173', 'https://app.localhost', 'http://127.0.0.1:8080', 'http://[::1]:3000'])(
    'at %s may send requests and read responses',
    async (origin) => {
      const { send } = await from(origin)
      const answer = await send('POST')
      expect(answer.status).toBe(429)
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': '*',
        vary: 'Origin',
        'retry-after': '7',
      })
    },
  )

  it('is allowed the headers that its preflight request names', async () => {
    const { send, rehearsal } = await from('http://localhost:5173')
    const answer = await send('OPTIONS', {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
    })
    expect(answer.status).toBe(204)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'access-control-allow-origin': 'http://localhost:5173',
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
    })
    expect(rehearsal.requests).toEqual([])
  })
})

describe('a page from elsewhere', () => {
  it.each([
    'https://evil.example',
    'http://localhost.evil.example',
    'http://127.0.0.1.evil.example',
    'http://localhost@evil.example',
    'null',
    'file://',
  ])('at %s is refused, and consumes no turn', async (origin) => {
    const { send, rehearsal } = await from(origin)
    for (const method of ['POST', 'OPTIONS']) {
      const answer = await send(method)
      expect(answer.status).toBe(403)
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      expect(await answer.json()).toMatchObject({
        error: { code: 'rehearsal_origin', message: expect.stringContaining('origins') },
      })
    }
    expect(rehearsal.requests).toEqual([])
  })

  it('is allowed if it is named, or if all are', async () => {
    for (const origins of [['https://app.test:8443'], ['*']]) {
      const { send } = await from('https://app.test:8443', origins)
      const answer = await send('POST')
      expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.test:8443')
    }
  })

  it.each(['app.test', 'https://app.test/', 'https://app.test/page', ''])(
    'cannot be named as %j',
    async (name) => {
      await expect(start({ scenario: { turns }, origins: [name] })).rejects.toMatchObject({
        code: 'invalid_options',
        subject: 'origins[0]',
        message: expect.stringContaining('an origin'),
      })
    },
  )
})

test('a program sends no origin and needs none', async () => {
  const { send } = await from(null)
  const answer = await send('POST')
  expect(answer.status).toBe(429)
  expect(answer.headers.get('access-control-allow-origin')).toBeNull()
})
