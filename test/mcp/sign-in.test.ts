import { jest } from '@jest/globals'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fileTokenStore, finishMcpSignIn, loopbackSignIn, type McpAuth } from '../../src/mcp/index.js'
import { createSignIn } from '../../src/mcp/client/sign-in/sign-in.js'
import { createSignInFetch } from '../../src/mcp/client/sign-in/sign-in-fetch.js'
import { authServer, willing as makeWilling } from './auth-server.js'
import { httpServer, json, startServer } from './http-server.js'
import { buildServing } from '../stores/child.js'
import { settled } from '../support/manual-model.js'
import { failureOf, open, use } from './support.js'

beforeEach(() => {
  // The SDK logs rejected tokens to the console.
  jest.spyOn(console, 'warn').mockReturnValue()
})

afterEach(() => {
  jest.restoreAllMocks()
})

/** An app's store with an asynchronous database. */
function textStore(texts: Map<string, string>): NonNullable<McpAuth['store']> {
  return {
    get: (key) => settled().then(() => texts.get(key)),
    set: (key, text) => settled().then(() => void texts.set(key, text)),
    delete: (key) => settled().then(() => void texts.delete(key)),
  }
}

/** Without fields that the options do not know. */
function willing(more: Partial<McpAuth> = {}): { auth: McpAuth; visits: URL[] } {
  const { visits, ...auth } = makeWilling(more)
  return { auth, visits }
}

describe('a server that requires a sign-in', () => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mcp-'))
  })

  afterEach(async () => {
    await rm(folder, { recursive: true, maxRetries: 5 })
  })

  it('can be used after the user has signed in once', async () => {
    const { url, requests } = await authServer()
    const { auth, visits } = willing()
    const server = await open({ url, auth })
    expect(await use(server, 'safe_go')).toBe('ok')
    expect(visits).toHaveLength(1)
    expect(visits[0]?.searchParams.get('resource')).toBe(url)
    expect(visits[0]?.searchParams.get('code_challenge_method')).toBe('S256')
    const registration = requests.find(({ path }) => path === '/register')
    expect(JSON.parse(registration?.body ?? '')).toMatchObject({ client_name: 'Statewright' })
  })

  it('refreshes its tokens if they expire during a run', async () => {
    const { url, expire, requests } = await authServer()
    const { auth, visits } = willing()
    const server = await open({ url, auth })
    expire()
    const results = await Promise.all([1, 2, 3].map(() => use(server, 'safe_go')))
    expect(results).toEqual(['ok', 'ok', 'ok'])
    expect(visits).toHaveLength(1)
    const refreshes = requests.filter(({ body }) => body.includes('refresh_token'))
    expect(refreshes.length).toBeGreaterThan(0)
  })

  it('asks the user once for all calls that it refuses at the same time', async () => {
    const { url, expire } = await authServer()
    const { auth, visits } = willing()
    const server = await open({ url, auth })
    expire(true)
    expect(await Promise.all([1, 2, 3].map(() => use(server, 'safe_go')))).toEqual(['ok', 'ok', 'ok'])
    expect(visits).toHaveLength(2)
  })

  it('does not ask again for a request that was refused before a sign-in and is repeated after it', async () => {
    const visits: URL[] = []
    const redirectUrl = 'http://127.0.0.1:1/callback'
    const signIn: McpAuth['signIn'] = (to) => void visits.push(to)
    const begun = createSignIn('http://127.0.0.1:1/mcp', { redirectUrl, signIn })
    const { provider } = begun
    const discover = () => provider.saveDiscoveryState?.({ authorizationServerUrl: 'http://127.0.0.1:1' })
    const redirect = async () => {
      await provider.saveCodeVerifier('a verifier')
      const state = (await provider.state?.()) ?? ''
      await provider.redirectToAuthorization(new URL(`http://127.0.0.1:1/authorize?state=${state}`))
    }
    await discover()
    await redirect()
    await discover()
    expect(await failureOf(begun.ask())).toMatchObject({ code: 'mcp_sign_in' })
    await redirect()
    await begun.ask()
    expect(visits).toHaveLength(1)
    await discover()
    await redirect()
    expect(await failureOf(begun.ask())).toMatchObject({ code: 'mcp_sign_in' })
    expect(visits).toHaveLength(2)
  })

  it('fails the call without sending it if the user is elsewhere', async () => {
    const server = await authServer()
    const { auth } = willing()
    let isHere = true
    const signIn: McpAuth['signIn'] = (to) => (isHere ? auth.signIn(to) : undefined)
    const opened = await open({ url: server.url, auth: { ...auth, signIn } })
    isHere = false
    server.expire(true)
    const failure = await failureOf(use(opened, 'safe_go'))
    expect(failure).toMatchObject({ name: 'ToolError', kind: 'failed' })
    expect(failure.message).toContain('Pass the callback URL to finishMcpSignIn')
    expect(server.calls).toBe(0)
  })

  it('can be used after the user has returned to another process', async () => {
    const { url } = await authServer()
    const path = join(folder, 'tokens.json')
    const sent: URL[] = []
    const signIn: McpAuth['signIn'] = (to) => void sent.push(to)
    const away = { redirectUrl: 'http://127.0.0.1:1/callback', signIn }
    const failure = await failureOf(open({ url, auth: { ...away, store: fileTokenStore(path) } }))
    expect(failure).toMatchObject({ name: 'StatewrightError', code: 'mcp_sign_in', subject: url })
    const { headers } = await fetch(sent[0] ?? '', { redirect: 'manual' })
    const { pathname, search } = new URL(headers.get('location') ?? '')
    const other = { url, auth: { ...away, store: fileTokenStore(path) } }
    await finishMcpSignIn(other, `${pathname}${search}`)
    expect(await use(await open(other), 'safe_go')).toBe('ok')
    // Each answer counts once.
    expect(await failureOf(finishMcpSignIn(other, `${pathname}${search}`))).toMatchObject({
      code: 'mcp_sign_in',
    })
  })

  const stores = {
    'one store': () => {
      const store = textStore(new Map())
      return () => store
    },
    'a store object per request': () => {
      const texts = new Map<string, string>()
      return () => textStore(texts)
    },
    'a file': () => () => fileTokenStore(join(folder, 'tokens.json')),
  }

  it.each(Object.entries(stores))(
    'exchanges an authorization code once if it arrives several times at once, with %s',
    async (_, make) => {
      const { url, requests } = await authServer()
      const openStore = make()
      const sent: URL[] = []
      const authOf = (): McpAuth => ({
        redirectUrl: 'http://127.0.0.1:1/callback',
        signIn: (to) => void sent.push(to),
        store: openStore(),
      })
      await failureOf(open({ url, auth: authOf() }))
      const { headers } = await fetch(sent[0] ?? '', { redirect: 'manual' })
      const callback = headers.get('location') ?? ''
      const finished = await Promise.allSettled(
        [1, 2, 3].map(() => finishMcpSignIn({ url, auth: authOf() }, callback)),
      )
      expect(finished.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
      expect(requests.filter(({ body }) => body.includes('grant_type=authorization_code'))).toHaveLength(1)
      expect(await use(await open({ url, auth: authOf() }), 'safe_go')).toBe('ok')
    },
  )

  it('refreshes tokens once for all connections that share them', async () => {
    const { url, expire, requests } = await authServer()
    const { auth, visits } = willing()
    const openOne = () => open({ url, auth: { ...auth, store: fileTokenStore(join(folder, 'tokens.json')) } })
    const servers = [await openOne(), await openOne(), await openOne()]
    expire()
    expect(await Promise.all(servers.map((server) => use(server, 'safe_go')))).toEqual(['ok', 'ok', 'ok'])
    expect(visits).toHaveLength(1)
    expect(requests.filter(({ body }) => body.includes('grant_type=refresh_token'))).not.toHaveLength(0)
  })

  it('refreshes tokens once, also for a request that starts while the new ones are stored', async () => {
    const { url, expire, requests } = await authServer()
    const texts = new Map<string, string>()
    let whileStored = async (): Promise<void> => undefined
    const openOne = () => {
      const store = textStore(texts)
      const set: typeof store.set = async (key, text) => {
        await whileStored()
        await store.set(key, text)
      }
      return open({ url, auth: { ...willing().auth, store: { ...store, set } } })
    }
    const [first, second] = [await openOne(), await openOne()]
    expire()
    let late: Promise<unknown> | undefined
    whileStored = async () => {
      late ??= use(second, 'safe_go')
      for (let turn = 0; turn < 200; turn += 1) await settled()
    }
    expect(await use(first, 'safe_go')).toBe('ok')
    expect(await late).toBe('ok')
    expect(requests.filter(({ body }) => body.includes('grant_type=refresh_token'))).toHaveLength(1)
  })

  it.each([
    ['another state', (back: URL) => back.searchParams.set('state', 'forged')],
    ['no state', (back: URL) => back.searchParams.delete('state')],
    ['another code', (back: URL) => back.searchParams.set('code', 'forged')],
    [
      'an error instead of a code',
      (back: URL) => (back.search = `?error=access_denied&state=${back.searchParams.get('state')}`),
    ],
  ])('is refused if the callback has %s', async (_, change) => {
    const server = await authServer()
    const { auth } = willing()
    const signIn = async (to: URL): Promise<URL> => {
      const back = new URL(String(await auth.signIn(to)))
      change(back)
      return back
    }
    const failure = await failureOf(open({ url: server.url, auth: { ...auth, signIn } }))
    expect(failure).toMatchObject({ code: 'mcp_sign_in', subject: server.url })
    expect(server.calls).toBe(0)
  })

  it('keeps the tokens in a file of the owner, and the next process does not sign in again', async () => {
    const { url } = await authServer()
    const path = join(folder, 'tokens.json')
    const { auth, visits } = willing({ store: fileTokenStore(path) })
    await (await open({ url, auth })).close()
    const again = await open({ url, auth: { ...auth, store: fileTokenStore(path) } })
    expect(await use(again, 'safe_go')).toBe('ok')
    expect(visits).toHaveLength(1)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('sends no other secrets of the user to the addresses that it names', async () => {
    const { url, requests } = await authServer()
    const { auth } = willing()
    await open({ url, auth, headers: { 'x-api-key': 'secret' } })
    expect(requests.length).toBeGreaterThan(3)
    expect(requests.filter(({ headers }) => 'x-api-key' in headers)).toEqual([])
  })

  it('that issues tokens for another resource is refused', async () => {
    const { url, metadata } = await authServer()
    metadata.resource.resource = 'https://bank.example/mcp'
    const { auth, visits } = willing()
    const failure = await failureOf(open({ url, auth }))
    expect(failure).toMatchObject({ code: 'mcp_unavailable' })
    expect(failure.message).toContain('https://bank.example/mcp')
    expect(visits).toEqual([])
  })

  it('cannot send the user to an address that is not a web page', async () => {
    const { url, metadata } = await authServer()
    metadata.server.authorization_endpoint = 'file:///etc/passwd'
    const { auth, visits } = willing()
    expect(await failureOf(open({ url, auth }))).toMatchObject({ code: 'mcp_unavailable' })
    expect(visits).toEqual([])
  })

  it('shows no token in its errors', async () => {
    const { url, expire } = await authServer()
    const path = join(folder, 'tokens.json')
    const { auth } = willing({ store: fileTokenStore(path) })
    const server = await open({ url, auth })
    const texts = Object.values(JSON.parse(await readFile(path, 'utf8')) as Record<string, string>)
    const { tokens } = JSON.parse(texts[0] ?? '{}') as {
      tokens: { access_token: string; refresh_token: string }
    }
    expire(true)
    auth.signIn = () => undefined
    const failure = await failureOf(use(server, 'safe_go'))
    for (const secret of [tokens.access_token, tokens.refresh_token])
      expect(failure.message).not.toContain(secret)
  })
})

describe('addresses that a server names for the sign-in', () => {
  it.each([
    'http://169.254.169.254/latest',
    'http://10.0.0.1/',
    'http://[::1]/',
    'http://127.0.0.1/',
    'http://printer.local/',
    'file:///etc/passwd',
  ])('%s is not requested for a public server', async (target) => {
    const failure = await failureOf(createSignInFetch(new URL('https://mcp.example.com/mcp'))(target))
    expect(failure.message).toMatch(/which is not a public address/)
  })

  it('are checked when the socket connects, so that a changed DNS name gains nothing', async () => {
    const { url, requests } = await httpServer(() => undefined)
    const [mine, theirs] = [new URL(url), new URL(url)]
    mine.hostname = 'mcp.example.com'
    theirs.hostname = 'auth.example.com'
    const requestLog: string[] = []
    const load = createSignInFetch(mine, {
      resolve: (host, _, done) => {
        requestLog.push(host)
        done(null, [{ address: '127.0.0.1', family: 4 }])
      },
    })
    expect((await failureOf(load(theirs))).message).toContain('not a public address')
    expect(requests).toEqual([])
    const body = JSON.stringify({ code: 'one' })
    expect((await load(mine, { method: 'POST', body })).status).toBe(202)
    expect(requests[0]?.headers).toMatchObject({
      host: mine.host,
      'content-type': expect.stringContaining('text/plain'),
    })
    expect(requestLog).toEqual(['auth.example.com', 'mcp.example.com'])
  })

  it.each(['', '{'])('are abandoned if they send no more than %j', async (answer) => {
    const { url } = await startServer((_, response) => void (answer === '' || response.write(answer)))
    const load = createSignInFetch(new URL(url), { answerMs: 50 })
    const failure = await failureOf(load(url).then((response) => response.text()))
    expect(failure.message).toMatch(/The sign-in took longer than 50 ms|aborted/)
  })

  it('follow redirects only within the policy', async () => {
    const { url } = await httpServer(
      () => undefined,
      (_, response) => {
        response.writeHead(200).end()
        return true
      },
    )
    const far = new URL(url)
    far.hostname = '10.0.0.1'
    const { url: from } = await httpServer(() => undefined)
    const redirecting = createSignInFetch(new URL(from))
    expect((await redirecting(url)).status).toBe(405)
    expect((await failureOf(redirecting(far))).message).toContain('not a public address')
  })
})

describe('fileTokenStore', () => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mcp-'))
  })

  afterEach(async () => {
    await rm(folder, { recursive: true, maxRetries: 5 })
  })

  it('loses no concurrent writes, and accepts names of object members', async () => {
    const path = join(folder, 'tokens.json')
    const store = fileTokenStore(path)
    await Promise.all(['a', 'b', 'c', '__proto__x'].map(async (key) => store.set(key, key)))
    await store.delete('b')
    const other = fileTokenStore(path)
    expect(
      await Promise.all(['a', 'b', 'c', '__proto__x', 'constructor'].map(async (key) => other.get(key))),
    ).toEqual(['a', undefined, 'c', '__proto__x', undefined])
  })

  it('loses no writes of several stores and processes', async () => {
    const path = join(folder, 'tokens.json')
    const built = buildServing()
    const script = `
      import { fileTokenStore } from ${JSON.stringify(built.url)}
      const store = fileTokenStore(process.argv[1])
      const name = process.argv[2]
      await Promise.all(Array.from({ length: 10 }, (_, i) => store.set(name + i, name)))
      for (let i = 0; i < 10; i += 1) await store.update('count', (text = '0') => String(Number(text) + 1))`
    const write = (name: string) =>
      promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, path, name])
    const here = [fileTokenStore(path), fileTokenStore(path)]
    await Promise.all([write('a'), write('b'), ...here.map((store, i) => store.set(`here${i}`, 'c'))])
    built.remove()
    const texts = JSON.parse(await readFile(path, 'utf8')) as Record<string, string>
    expect(Object.keys(texts)).toHaveLength(23)
    expect(texts['count']).toBe('20')
    expect(await readdir(folder)).toEqual(['tokens.json'])
  }, 60_000)

  it('takes over the lock of a process that has died', async () => {
    const path = join(folder, 'tokens.json')
    await writeFile(`${path}.lock`, 'gone')
    const old = new Date(Date.now() - 60_000)
    await utimes(`${path}.lock`, old, old)
    await Promise.all([fileTokenStore(path).set('a', '1'), fileTokenStore(path).set('b', '2')])
    expect(await readdir(folder)).toEqual(['tokens.json'])
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ a: '1', b: '2' })
  })

  it.each(['no json with a secret', '[1]', '{"a":{"b":"secret"}}'])(
    'refuses a file of %j, and shows none of it',
    async (text) => {
      const path = join(folder, 'tokens.json')
      await writeFile(path, text)
      const failure = await failureOf(Promise.resolve(fileTokenStore(path).get('a')))
      expect(failure).toMatchObject({ code: 'mcp_tokens', subject: path })
      expect(failure.message).not.toContain('secret')
    },
  )

  it('reports a folder that does not exist', async () => {
    const path = join(folder, 'none/tokens.json')
    const failure = await failureOf(Promise.resolve(fileTokenStore(path).set('a', 'b')))
    expect(failure).toMatchObject({ code: 'mcp_tokens', subject: path })
  })
})

describe('loopbackSignIn', () => {
  it('receives the user on this machine, and no other request', async () => {
    const { url } = await authServer()
    const seen: number[] = []
    const port = await findFreePort()
    const visit = async (address: string): Promise<void> => {
      seen.push((await fetch(`http://127.0.0.1:${port}/callback?code=x&state=forged`)).status)
      seen.push((await fetch(`http://127.0.0.1:${port}/favicon.ico`)).status)
      seen.push((await fetch(address)).status)
    }
    const browse = (address: string): void => void visit(address)
    const server = await open({ url, auth: loopbackSignIn({ port, open: browse }) })
    expect(await use(server, 'safe_go')).toBe('ok')
    expect(seen).toEqual([404, 404, 200])
    await expect(fetch(`http://127.0.0.1:${port}/callback`)).rejects.toThrow('fetch failed')
  })

  it('reports the port that is in use', async () => {
    const { url } = await httpServer((request, response) => json(response, request, {}))
    const port = Number(new URL(url).port)
    const { url: safe } = await authServer()
    const failure = await failureOf(
      open({ url: safe, auth: loopbackSignIn({ port, open: () => undefined }) }),
    )
    expect(failure).toMatchObject({ code: 'mcp_sign_in', subject: 'port' })
    expect(failure.message).toContain(`port ${port}`)
  })

  it('stops after timeoutMs', async () => {
    const { url } = await authServer()
    const port = await findFreePort()
    const auth = loopbackSignIn({ port, open: () => undefined, timeoutMs: 50 })
    expect(await failureOf(open({ url, auth }))).toMatchObject({ code: 'mcp_sign_in', subject: 'timeoutMs' })
  })
})

async function findFreePort(): Promise<number> {
  const { url, close } = await httpServer(() => undefined)
  close()
  return Number(new URL(url).port)
}
