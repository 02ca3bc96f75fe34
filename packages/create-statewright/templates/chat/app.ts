/** The requests of the page: chats, and their list. */
import { Hono } from 'hono'
import { getCookie } from 'hono/cookie'
import { chatHandler } from 'statewright/ui'
import { agent, store } from './agent.mjs'

/** Each browser is a user of its own. A real server looks here who has signed in. */
export const visitorCookie = 'visitor'

const visitorPattern = /^[\w-]{36}$/

export function findVisitor(cookie: string | undefined): string | null {
  return cookie !== undefined && visitorPattern.test(cookie) ? cookie : null
}

const chat = chatHandler({
  agent,
  authorize: (request) => {
    const cookies = request.headers.get('cookie') ?? ''
    const prefix = findVisitor(new RegExp(`(?:^|; )${visitorCookie}=([^;]*)`).exec(cookies)?.[1])
    // A chat has one person, so the person who opens it may continue it after the server has ended.
    return prefix && { prefix, mayContinue: true }
  },
})

export const app = new Hono()

app.all('/api/chat', ({ req }) => chat(req.raw))
app.all('/api/chat/*', ({ req }) => chat(req.raw))

/** The chats of a user, the latest first. */
app.get('/api/chats', async (context) => {
  const prefix = findVisitor(getCookie(context, visitorCookie))
  const sessions = prefix === null ? [] : await store.list({ prefix, limit: 50 })
  context.header('cache-control', 'no-store')
  return context.json(
    sessions.map(({ id, summary }) => ({
      id: id.slice((prefix?.length ?? 0) + 1),
      title: summary?.title ?? 'Chat',
    })),
  )
})
