/**
 * A chat page with approvals, page tools, a queue, stop, and a list of chats:
 *
 *   npm run example -- chat-react    # in a clone. With OPENAI_API_KEY it uses a real model
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { chatHandler } from 'statewright/ui'
import { createServer as createVite } from 'vite'
import { agent, isRehearsal, store } from './agent.mjs'

// Each browser is a separate user. A real server checks the signed-in user here.
const findVisitor = (cookies) => /(?:^|; )visitor=([\w-]{36})/.exec(cookies ?? '')?.[1] ?? null

const chat = chatHandler({
  agent,
  authorize: (request) => {
    const prefix = findVisitor(request.headers.get('cookie'))
    // Each chat has only one user, so its user may continue it after a restart of the server.
    return prefix && { prefix, mayContinue: true }
  },
})

/** A user's chats, latest first. */
async function listChats(request) {
  const prefix = findVisitor(request.headers.get('cookie'))
  const sessions = prefix ? await store.list({ prefix, limit: 50 }) : []
  return Response.json(
    sessions.map(({ id, summary }) => ({ id: id.slice(prefix.length + 1), title: summary?.title ?? 'Chat' })),
    { headers: { 'cache-control': 'no-store', 'x-rehearsal': String(isRehearsal) } },
  )
}

const api = createRequestListener((request) =>
  new URL(request.url).pathname === '/api/chats' ? listChats(request) : chat(request),
)
const server = createServer((request, response) => {
  // Another site's host name may resolve to this machine, so the server answers only requests for its own names.
  if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(request.headers.host ?? '')) {
    response.writeHead(403).end()
  } else if (request.url?.startsWith('/api/')) {
    api(request, response)
  } else {
    if (findVisitor(request.headers.cookie) === null)
      response.setHeader('set-cookie', `visitor=${randomUUID()}; Path=/; HttpOnly; SameSite=Strict`)
    vite.middlewares(request, response)
  }
})
// In a clone, the package is two folders up.
const vite = await createVite({
  root: import.meta.dirname,
  server: { middlewareMode: true, hmr: { server }, fs: { allow: ['../..'] } },
  logLevel: 'warn',
})
server.listen(Number(process.env.PORT ?? 4200), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port}`),
)
