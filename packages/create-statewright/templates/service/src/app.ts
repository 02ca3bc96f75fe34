/** The HTTP interface, with routes to start, read, answer and cancel a session. */
import { timingSafeEqual } from 'node:crypto'
import { Hono } from 'hono'
import { StatewrightError, type Agent } from 'statewright'
import type { DbosSessions } from 'statewright/dbos'
import { z } from 'zod'

const beginning = z.object({ session: z.string().min(1).max(100), input: z.string().min(1).max(100_000) })
const answering = z.object({
  callId: z.string(),
  fingerprint: z.string(),
  approve: z.boolean(),
  why: z.string().optional(),
})

interface AppParts {
  agent: Agent
  sessions: DbosSessions
  /** A client with this token has full access. */
  token: string
}

export function createApp({ agent, sessions, token }: AppParts): Hono {
  const app = new Hono()
  app.get('/health', (context) => context.text('ok'))
  app.use('/sessions/*', async (context, next) => {
    const candidate = context.req.header('authorization')?.replace(/^Bearer /, '') ?? ''
    if (!isSame(candidate, token))
      return context.json({ error: 'Send the token: Authorization: Bearer …' }, 401)
    await next()
  })
  app.onError((error, context) => {
    if (error instanceof z.ZodError) return context.json({ error: z.prettifyError(error) }, 400)
    if (error instanceof SyntaxError) return context.json({ error: 'The body is not valid JSON.' }, 400)
    if (error instanceof StatewrightError)
      return context.json(
        { error: error.message, code: error.code },
        error.code === 'unknown_session' ? 404 : 409,
      )
    console.error(error)
    return context.json({ error: 'The service failed.' }, 500)
  })

  app.post('/sessions', async (context) => {
    const { session, input } = beginning.parse(await context.req.json())
    await sessions.enqueue({ session, input })
    return context.json({ session }, 202)
  })

  app.get('/sessions/:id', async (context) => {
    const { run, seq } = await agent.replay(context.req.param('id'))
    if (run === null) return context.json({ state: 'QUEUED' })
    const { state, reason, pending, usage } = run
    return context.json({ state, reason, pending, usage, seq, output: 'output' in run ? run.output : null })
  })

  app.post('/sessions/:id/answers', async (context) => {
    const id = context.req.param('id')
    const { callId, fingerprint, approve, why } = answering.parse(await context.req.json())
    const { seq } = await agent.replay(id)
    const answer = approve
      ? ({ type: 'approve', callId, fingerprint } as const)
      : ({ type: 'reject', callId, fingerprint, why: why ?? 'No.' } as const)
    return context.json(await sessions.answer(id, [answer], { at: seq }), 202)
  })

  app.post('/sessions/:id/cancel', async (context) =>
    context.json(await agent.send(context.req.param('id'), { type: 'cancel' })),
  )
  return app
}

function isSame(candidate: string, token: string): boolean {
  const [a, b] = [Buffer.from(candidate), Buffer.from(token)]
  return a.length === b.length && timingSafeEqual(a, b)
}
