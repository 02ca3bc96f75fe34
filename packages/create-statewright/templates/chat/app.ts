/** The endpoints of the page: chats, and the list of chats. */
import { Hono } from 'hono'
import { chatHandler } from 'statewright/ui'
import { agent, isRehearsal, store } from './agent.mjs'

/** Each browser is a separate user. A real server checks the signed-in user here. */
export function findVisitor(cookies: string | null | undefined): string | null {
  return /(?:^|; )visitor=([\w-]{36})(?:;|$)/.exec(cookies ?? '')?.[1] ?? null
}

const chat = chatHandler({
  agent,
  authorize: (request) => {
    const prefix = findVisitor(request.headers.get('cookie'))
    // Each chat has only one user, so its user may continue it after a restart of the server.
    return prefix && { prefix, mayContinue: true }
  },
})

export const app = new Hono()

app.all('/api/chat', ({ req }) => chat(req.raw))
app.all('/api/chat/*', ({ req }) => chat(req.raw))

/** A user's chats, latest first. */
app.get('/api/chats', async (context) => {
  const prefix = findVisitor(context.req.header('cookie'))
  const sessions = prefix === null ? [] : await store.list({ prefix, limit: 50 })
  context.header('cache-control', 'no-store')
  context.header('x-rehearsal', String(isRehearsal))
  return context.json(
    sessions.map(({ id, summary }) => ({
      id: id.slice((prefix?.length ?? 0) + 1),
      title: summary?.title ?? 'Chat',
    })),
  )
})
