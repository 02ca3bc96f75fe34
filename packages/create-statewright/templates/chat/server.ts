/**
 * Serves the page and the chats:
 *
 *   npm start                        plays a rehearsal, or uses a real model with OPENAI_API_KEY
 *   npm run build && npm run serve   serves the built page
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { serveStatic } from '@hono/node-server/serve-static'
import { app, findVisitor } from './app.js'

const port = Number(process.env['PORT'] ?? 4200)
const isProduction = process.env['NODE_ENV'] === 'production'
if (isProduction) app.get('*', serveStatic({ root: './dist' }))

const answer = getRequestListener(app.fetch)
const server = createServer((request, response) => {
  // Another site's host name may resolve to this machine, so the server answers only requests for its own names.
  if (!isProduction && !/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(request.headers.host ?? ''))
    return response.writeHead(403).end()
  if (request.url?.startsWith('/api/')) return void answer(request, response)
  greet(request, response)
  if (vite) vite.middlewares(request, response)
  else void answer(request, response)
})
const vite = isProduction ? null : await openVite()
server.listen(port, isProduction ? undefined : '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${(server.address() as AddressInfo).port}`),
)

/** Registers a new browser as a user. */
function greet({ headers }: IncomingMessage, response: ServerResponse): void {
  if (findVisitor(headers.cookie) === null)
    response.setHeader('set-cookie', `visitor=${randomUUID()}; Path=/; HttpOnly; SameSite=Strict`)
}

async function openVite() {
  const { createServer: createVite } = await import('vite')
  return createVite({ server: { middlewareMode: true, hmr: { server } }, logLevel: 'warn' })
}
