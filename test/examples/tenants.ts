import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ChatTransport, UIMessage } from 'ai'
import { chatTransport } from '../../src/ui/client/index.js'
import { until } from '../support/play.js'
import { Chat, protocol, textOf } from '../ui/client.js'

/** The example imports the built package. */
const isBuilt = existsSync('dist/src/index.js')
if (!isBuilt) process.stderr.write('The test of examples/chat-tenants is skipped: run npm run build first.\n')

interface Server {
  url: string
  child: ChildProcess
}

async function startServer(databaseUrl: string): Promise<Server> {
  const child = spawn(process.execPath, [join(process.cwd(), 'examples/chat-tenants/server.mjs')], {
    env: { PATH: process.env['PATH'], DATABASE_URL: databaseUrl, PORT: '0', SESSION_SECRET: 'of the test' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, url: /http:\S+/.exec(printed.toString())?.[0] ?? '' }
}

async function stopServer({ child }: Server, signal: NodeJS.Signals): Promise<number | null> {
  child.kill(signal)
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

/** The tests of examples/chat-tenants on a database. The chats have random ids, so that the database can have others. */
export function describeTenants(getUrl: () => string): void {
  const whenBuilt = isBuilt ? describe : describe.skip
  whenBuilt('examples/chat-tenants', () => {
    let server: Server
    beforeEach(async () => {
      server = await startServer(getUrl())
    })
    afterEach(async () => {
      if (server.child.exitCode === null && server.child.signalCode === null)
        await stopServer(server, 'SIGKILL')
    })

    const post = (path: string, body: unknown, cookie = '') =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', cookie },
        body: JSON.stringify(body),
      })
    const get = (path: string, cookie: string) => fetch(server.url + path, { headers: { cookie } })

    async function logIn(name: string, password: string): Promise<string> {
      const response = await post('/api/login', { name, password })
      expect(response.status).toBe(200)
      return response.headers.get('set-cookie')?.split(';')[0] ?? ''
    }

    /** The client of the AI SDK with the cookie of a user, as a browser sends it. */
    function openChat(id: string, cookie: string, messages: UIMessage[] = []): Chat {
      const transport = chatTransport({
        api: `${server.url}/api/chat`,
        protocol: protocol as 'v7',
        headers: { cookie },
      }) as ChatTransport<UIMessage>
      return new Chat(id, fetch, { transport, messages })
    }

    const readChat = async (id: string, cookie: string) =>
      (await (await get(`/api/chat/${id}`, cookie)).json()) as UIMessage[]
    const listChats = async (cookie: string) => {
      const { chats } = (await (await get('/api/chats', cookie)).json()) as { chats: { id: string }[] }
      return chats.map((chat) => chat.id)
    }

    function findApproval(chat: Chat): string {
      const ids = (chat.lastMessage?.parts ?? []).flatMap((part) =>
        'approval' in part && part.approval ? [part.approval.id] : [],
      )
      expect(ids).toHaveLength(1)
      return ids[0] ?? ''
    }

    /** Answers an approval request, and waits for the end of the response. */
    async function answer(chat: Chat, id: string, approved: boolean): Promise<void> {
      await chat.addToolApprovalResponse({ id, approved })
      await until(() => chat.status === 'ready' || chat.status === 'error')
    }

    test('the page and the script state that a script plays the model', async () => {
      expect(await (await fetch(server.url)).text()).toContain('<p id="script">A script plays the model')
      const chat = openChat(randomUUID(), await logIn('ann', 'anvil'))
      await chat.sendMessage({ text: 'Book me a train to Geneva.' })
      expect(chat.text).toContain('I am a script, not a model')
    })

    test('users of a tenant share its chats, and the tools see only the orders of their tenant', async () => {
      const [ann, bob, cem] = await Promise.all([
        logIn('ann', 'anvil'),
        logIn('bob', 'hammer'),
        logIn('cem', 'lamp'),
      ])
      const id = randomUUID()
      const [ofAcme, ofGlobex] = [openChat(id, ann), openChat(id, cem)]
      await ofAcme.sendMessage({ text: 'Which orders do I have?' })
      await ofGlobex.sendMessage({ text: 'Which orders do I have?' })
      expect([ofAcme.errors, ofGlobex.errors]).toEqual([[], []])
      expect([ofAcme.text, ofGlobex.text]).toEqual([
        expect.stringContaining('anvil'),
        expect.stringContaining('lamp'),
      ])
      // The same chat id names a different session in each tenant.
      expect((await readChat(id, bob)).map(textOf).join()).toContain('anvil')
      expect((await readChat(id, cem)).map(textOf).join()).not.toContain('anvil')
      const own = randomUUID()
      await openChat(own, ann).sendMessage({ text: 'And now?' })
      expect(await listChats(bob)).toContain(own)
      expect(await listChats(cem)).not.toContain(own)
      expect(await readChat(own, cem)).toEqual([])
    })

    test('another tenant can neither read, stop nor answer a chat that waits; its own user approves it', async () => {
      const [ann, cem] = await Promise.all([logIn('ann', 'anvil'), logIn('cem', 'lamp')])
      const id = randomUUID()
      const chat = openChat(id, ann)
      await chat.sendMessage({ text: 'Cancel my order.' })
      const approvalId = findApproval(chat)

      const stolen = openChat(id, cem, chat.messages)
      await answer(stolen, approvalId, true)
      expect(stolen.errors).toEqual([expect.objectContaining({ status: 409 })])
      const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Go on.' }] }
      const named = await post('/api/chat', { id: `acme:${id}`, messages: [message] }, cem)
      expect(named.status).toBe(400)
      await post(`/api/chat/${id}/stop`, {}, cem)
      expect((await get(`/api/chat/${id}/stream`, cem)).status).toBe(204)

      await answer(chat, approvalId, true)
      expect(chat.errors).toEqual([])
      expect(chat.text).toContain('Cancelled order 17 (anvil) for ann.')
    })

    test('after kill -9, a new server has the chats, and the approval still counts', async () => {
      const id = randomUUID()
      const cookie = await logIn('cem', 'lamp')
      await openChat(id, cookie).sendMessage({ text: 'Cancel my order.' })
      await stopServer(server, 'SIGKILL')
      server = await startServer(getUrl())
      const chat = openChat(id, cookie, await readChat(id, cookie))
      await answer(chat, findApproval(chat), false)
      expect(chat.errors).toEqual([])
      expect(chat.text).toContain('Rejected by the user')
      expect(await stopServer(server, 'SIGTERM')).toBe(0)
    })

    test('a missing, forged or ended login is refused', async () => {
      const refused = await Promise.all(
        [
          ['ann', 'lamp'],
          ['nobody', ''],
          ['constructor', 'x'],
        ].map(async ([name, password]) => (await post('/api/login', { name, password })).status),
      )
      expect(refused).toEqual([401, 401, 401])
      const cookie = await logIn('ann', 'anvil')
      const [text = '', signature = ''] = cookie.slice('login='.length).split('.')
      const user = JSON.parse(Buffer.from(text, 'base64url').toString()) as object
      const encode = (changed: object) => Buffer.from(JSON.stringify(changed)).toString('base64url')
      const cookies = ['', `login=${text}`, `login=${encode({ ...user, tenant: 'globex' })}.${signature}`]
      for (const each of cookies) {
        expect((await get('/api/chats', each)).status).toBe(401)
        expect((await get('/api/chat/c1', each)).status).toBe(401)
        expect((await post('/api/chat', { id: 'c1', messages: [] }, each)).status).toBe(401)
      }
      expect((await get('/api/chats', cookie)).status).toBe(200)
      const out = await post('/api/logout', {}, cookie)
      expect(out.headers.get('set-cookie')).toContain('login=; Max-Age=0')
    })
  })
}
