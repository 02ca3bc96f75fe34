/**
 * A chat with a login for several tenants, in Postgres. README.md has the setup.
 *
 *   npm run example -- chat-tenants    # in a clone
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { openStore } from 'statewright/stores'
import { chatHandler } from 'statewright/ui'
import { createOrderAgent } from './agent.mjs'
import { checkPassword, createCookie, readUser } from './login.mjs'

const { DATABASE_URL = 'file:.statewright/tenants', PORT = '3000' } = process.env

const store = await openStore(DATABASE_URL)
const chat = chatHandler({
  agent: await createOrderAgent(store),
  // The tenant is the prefix of all session ids of a request, and the context of its tool calls.
  authorize: (request) => {
    const user = readUser(request)
    // Each user of a tenant may continue its chats after a crash.
    return user && { prefix: user.tenant, context: user, mayContinue: true }
  },
})

async function logIn(request) {
  const { name, password } = await request.json().catch(() => ({}))
  const user = await checkPassword(name, password)
  if (user === null) return Response.json({ error: 'Wrong name or password.' }, { status: 401 })
  return Response.json(user, { headers: { 'set-cookie': createCookie(user) } })
}

/** The chats of the user's tenant, latest first. */
async function listChats(request) {
  const user = readUser(request)
  if (user === null) return Response.json({ error: 'Log in first.' }, { status: 401 })
  const sessions = await store.list({ prefix: user.tenant, limit: 50 })
  const chats = sessions.map(({ id, summary }) => ({
    id: id.slice(user.tenant.length + 1),
    title: summary?.title ?? 'Chat',
  }))
  return Response.json({ user, chats }, { headers: { 'cache-control': 'no-store' } })
}

async function readPage() {
  const page = await readFile(new URL('index.html', import.meta.url), 'utf8')
  const shown = process.env.OPENAI_API_KEY ? page : page.replace('id="script" hidden', 'id="script"')
  return new Response(shown, { headers: { 'content-type': 'text/html; charset=utf-8' } })
}

const routes = {
  'GET /': readPage,
  'GET /api/chats': listChats,
  'POST /api/login': logIn,
  'POST /api/logout': () => Response.json({}, { headers: { 'set-cookie': createCookie(null) } }),
}

const server = createServer(
  createRequestListener((request) => {
    const route = routes[`${request.method} ${new URL(request.url).pathname}`]
    return route ? route(request) : chat(request)
  }),
)
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`Open http://127.0.0.1:${server.address().port}`)
})
process.once('SIGTERM', async () => {
  server.close()
  server.closeAllConnections()
  await store.close()
  process.exit() // The server of the scripted model would keep the process alive.
})
