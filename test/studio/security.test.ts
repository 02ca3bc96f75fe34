import { memoryStore } from '../../src/index.js'
import { startStudio } from '../../src/studio/index.js'
import { paths } from '../../src/studio/routes.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { ask, visit, type Visitor } from './visitor.js'

async function waiting() {
  const store = memoryStore()
  const { agent, paid, close } = await rehearsedAgent(store, eventful)
  const { pending = [] } = await agent.run('Pay.', { session: 's' }).result
  const visitor = await visit({ store, agent })
  return { visitor, paid, close, approve: { type: 'approve', ...pending[0] } }
}

test.each<[string, (visitor: Visitor) => Parameters<typeof ask>]>([
  ['no cookie', ({ base }) => [`${base}/`]],
  ['another cookie', ({ base, cookie }) => [`${base}/api/sessions`, { headers: { cookie: `${cookie}x` } }]],
  ['the cookie in another header', ({ origin, cookie }) => [`${origin}/`, { headers: { cookie } }]],
  ['the cookie in half of the header', ({ base, cookie }) => [base.slice(0, -2), { headers: { cookie } }]],
  ['a wrong token', ({ origin }) => [`${origin}/?token=${'a'.repeat(32)}`]],
  ['half a token', ({ studio }) => [studio.url.slice(0, -4)]],
  ['no token', ({ origin }) => [`${origin}/?token=`]],
  [
    'another host',
    ({ base, cookie }) => [`${base}/api/sessions`, { headers: { cookie, host: 'evil.example' } }],
  ],
  [
    'a host that starts like ours',
    ({ base, cookie, origin }) => [
      `${base}/api/sessions`,
      { headers: { cookie, host: `127.0.0.1.evil.example:${new URL(origin).port}` } },
    ],
  ],
  ['another host, with the token', ({ studio }) => [studio.url, { headers: { host: 'evil.example' } }]],
  [
    'another origin',
    ({ base, cookie }) => [`${base}/api/sessions`, { headers: { cookie, origin: 'https://evil.example' } }],
  ],
  [
    'another page of this machine without an origin',
    ({ base, cookie }) => [`${base}/api/sessions`, { headers: { cookie, 'sec-fetch-site': 'same-site' } }],
  ],
  [
    'an origin on another port',
    ({ base, cookie }) => [`${base}/api/live`, { headers: { cookie, origin: 'http://127.0.0.1:1' } }],
  ],
])('%s: 403, and no data of any session', async (_, question) => {
  const { visitor, close } = await waiting()
  const { status, body } = await ask(...question(visitor))
  expect(status).toBe(403)
  expect(body).not.toMatch(/Pay|token=|statewright-/)
  await close()
})

describe('a post', () => {
  const json = 'application/json'

  test.each<[string, (visitor: Visitor) => Record<string, string>]>([
    ['without an origin', () => ({ 'content-type': json })],
    ['of another origin', () => ({ 'content-type': json, origin: 'https://evil.example' })],
    ['of an opaque origin', () => ({ 'content-type': json, origin: 'null' })],
    ['in the encoding of a form', ({ origin }) => ({ 'content-type': 'text/plain', origin })],
    ['in another encoding of a form', ({ origin }) => ({ 'content-type': 'multipart/form-data', origin })],
    ['without a type', ({ origin }) => ({ origin })],
  ])('%s is refused, and nothing is approved', async (_, headersFor) => {
    const { visitor, paid, close, approve } = await waiting()
    const body = JSON.stringify(approve)
    const { status } = await visitor.raw(paths.answers('s'), {
      method: 'POST',
      headers: headersFor(visitor),
      body,
    })
    expect(status).toBe(403)
    expect(paid).toEqual([])
    await close()
  })

  test('with more than a megabyte, invalid JSON, or an invalid answer is refused with a message', async () => {
    const { visitor, close } = await waiting()
    const huge = await visitor.post(paths.answers('s'), { type: 'reply', input: 'x'.repeat(1_100_000) })
    expect(huge).toMatchObject({ status: 413, error: { code: 'too_large' } })
    const headers = { origin: visitor.origin, 'content-type': json }
    const none = await visitor.raw(paths.answers('s'), { method: 'POST', headers, body: '{' })
    expect([none.status, JSON.parse(none.body)]).toMatchObject([400, { error: { code: 'invalid_input' } }])
    for (const body of [null, [], { type: 'delete' }, { type: 'reply' }, { type: 'pause', also: 1 }]) {
      expect(await visitor.post(paths.answers('s'), body)).toMatchObject({
        status: 400,
        error: { code: 'invalid_input' },
      })
    }
    expect(await visitor.post(paths.answers('nobody'), { type: 'pause' })).toMatchObject({ status: 404 })
    expect(await visitor.post(paths.answers('..%2F..%2Fetc'), { type: 'pause' })).toMatchObject({
      status: 404,
    })
    await close()
  })
})

test('the token is exchanged once, for a cookie that no script reads and no other site or server receives', async () => {
  const { visitor, close } = await waiting()
  const address = visitor.studio.url
  const first = await ask(address)
  const base = first.headers.location ?? ''
  expect([first.status, base]).toEqual([303, expect.stringMatching(/^\/[\w-]{32}\/$/)])
  expect(first.headers['set-cookie']).toEqual([
    expect.stringMatching(/^statewright-\d+=[\w-]{32}; HttpOnly; SameSite=Strict; Path=\/[\w-]{32}\/$/),
  ])
  expect(first.headers['set-cookie']?.[0]).toContain(`Path=${base}`)
  expect(address).not.toContain(visitor.cookie.split('=')[1])
  // The browser that opened the address can return. Other browsers get no access.
  const second = await ask(address)
  expect([second.status, second.headers.location, second.headers['set-cookie']]).toEqual([
    303,
    base,
    undefined,
  ])
  const without = await ask(new URL(base, address).href)
  expect([without.status, without.body]).toEqual([
    403,
    expect.stringContaining('another browser has already opened it'),
  ])
  expect(without.body).toContain('press Enter')
  // A second browser gets another address.
  expect(visitor.studio.url).not.toBe(address)
  expect((await ask(visitor.studio.url)).headers['set-cookie']).toHaveLength(1)
  const other = await visit({ store: memoryStore() })
  expect((await other.raw('/', { headers: { cookie: visitor.cookie } })).status).toBe(403)
  await close()
})

test('a cookie of the same name from another server of this machine locks no browser out', async () => {
  const { visitor, close } = await waiting()
  const [name = ''] = visitor.cookie.split('=')
  for (const cookie of [`${name}=theirs; ${visitor.cookie}`, `${visitor.cookie}; ${name}=theirs`]) {
    expect((await visitor.raw('/', { headers: { cookie } })).status).toBe(200)
  }
  expect((await visitor.raw('/', { headers: { cookie: `${name}=theirs` } })).status).toBe(403)
  await close()
})

test('every response forbids features that it does not need', async () => {
  const { visitor, close } = await waiting()
  for (const path of ['/', '/api/sessions', '/nowhere', paths.live()]) {
    if (path === paths.live()) continue
    const { headers } = await visitor.raw(path)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(headers['access-control-allow-origin']).toBeUndefined()
  }
  const { headers, body } = await visitor.raw('/')
  const policy = headers['content-security-policy'] ?? ''
  expect(policy).toMatch(/^default-src 'none'; /)
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe|https?:|\*/)
  expect(body).not.toMatch(/<script(?! type="module" src="client\.js")|https?:\/\//)
  await close()
})

test("the page contains a frame if Stately's editor is enabled, and only of its site", async () => {
  const store = memoryStore()
  const policyOf = async (stately?: object): Promise<string> => {
    const visitor = await visit({ store, ...(stately && { stately }) })
    return String((await visitor.raw('/')).headers['content-security-policy'])
  }
  expect(await policyOf()).not.toContain('frame-src')
  expect(await policyOf({})).toContain('; frame-src https://editor.stately.ai; ')
  expect(await policyOf({ editor: 'http://127.0.0.1:8080/embed?x=1' })).toContain(
    '; frame-src http://127.0.0.1:8080; ',
  )
})

test.each<[string, unknown]>([
  ['store', undefined],
  ['store', null],
  ['port', { port: 70_000 }],
  ['port', { port: -1 }],
  ['port', { port: '4111' }],
  ['agent', { agent: {} }],
  ['agent', { agent: null }],
  ['machine', { machine: {} }],
  ['stately.editor', { stately: { editor: 'javascript:alert(1)' } }],
  ['stately.editor', { stately: { editor: 'editor' } }],
])('an invalid %s is refused by name', async (subject, options) => {
  const input = options && { store: memoryStore(), ...options }
  await expect(startStudio(input as never)).rejects.toMatchObject({ code: 'invalid_config', subject })
})

test('an unknown option is refused, with a suggestion', async () => {
  const options = { store: memoryStore(), contxt: {} }
  await expect(startStudio(options as never)).rejects.toMatchObject({
    code: 'invalid_config',
    subject: 'contxt',
    message: "startStudio has no option 'contxt'. Did you mean context?",
  })
})

test('a value that is not a run is not attached', async () => {
  const { visitor, close } = await waiting()
  for (const run of [undefined, null, {}, { sessionId: 's' }]) {
    expect(() => {
      visitor.studio.attach(run as never)
    }).toThrow(expect.objectContaining({ code: 'invalid_input' }) as Error)
  }
  await close()
})

test('the server listens only on this machine, reports it if it cannot, and stops', async () => {
  const studio = await startStudio({ store: memoryStore() })
  const { port } = new URL(studio.url)
  expect(studio.url).toMatch(/^http:\/\/127\.0\.0\.1:/)
  await expect(startStudio({ store: memoryStore(), port: Number(port) })).rejects.toMatchObject({
    code: 'cannot_listen',
    message: expect.stringContaining('The studio cannot listen') as string,
  })
  await expect(startStudio({})).rejects.toMatchObject({ code: 'invalid_config', subject: 'store' })
  const { agent, close } = await rehearsedAgent(memoryStore(), eventful, { store: undefined } as never)
  await expect(startStudio({ store: memoryStore(), agent })).rejects.toMatchObject({
    code: 'invalid_config',
    subject: 'agent',
  })
  await close()
  await Promise.all([studio.close(), studio.close()])
  await expect(fetch(studio.url)).rejects.toThrow()
})
