import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService, type Service } from '../src/service.js'
import { openPostgres, type OwnPostgres } from './own-postgres.js'

delete process.env['OPENAI_API_KEY']
const token = 'a-token-for-tests'
const postgres: OwnPostgres | null = await openPostgres()
const skip = postgres === null && 'there is no Postgres here: install one, or name one with DATABASE_URL'
let service: Service

before(async () => {
  if (postgres) service = await startService({ databaseUrl: postgres.url, token, port: 0 })
})
after(async () => {
  await service?.stop()
  await postgres?.stop()
})

async function send(path: string, body?: unknown, bearer = token): Promise<{ status: number; reply: any }> {
  const response = await fetch(`${service.url}${path}`, {
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: response.status, reply: await response.json() }
}

/** Polls a session until it reaches a state. */
async function rest(session: string, state: string): Promise<any> {
  for (let looks = 0; looks < 300; looks += 1) {
    const { reply } = await send(`/sessions/${session}`)
    if (reply.state === state) return reply
    await sleep(100)
  }
  throw new Error(`${session} did not come to ${state}.`)
}

test('pays an invoice after a person approves it', { skip }, async () => {
  const session = `invoice-${Date.now()}`
  assert.equal((await send('/sessions', { session, input: 'Pay invoice 17.' })).status, 202)
  const { pending } = await rest(session, 'WAITING_FOR_INPUT')
  assert.equal(pending[0].name, 'pay')
  const { callId, fingerprint } = pending[0]
  assert.equal(
    (await send(`/sessions/${session}/answers`, { callId, fingerprint, approve: true })).status,
    202,
  )
  assert.equal((await rest(session, 'COMPLETED')).output, 'Invoice 17 is paid.')
})

test('ends a cancelled session', { skip }, async () => {
  const session = `cancelled-${Date.now()}`
  await send('/sessions', { session, input: 'Pay invoice 17.' })
  await rest(session, 'WAITING_FOR_INPUT')
  await send(`/sessions/${session}/cancel`, {})
  assert.equal((await rest(session, 'CANCELLED')).state, 'CANCELLED')
})

test('refuses a missing token, an unknown session and an invalid body', { skip }, async () => {
  assert.equal((await send('/sessions/x', undefined, 'wrong')).status, 401)
  assert.equal((await send('/sessions/unknown')).status, 404)
  assert.equal((await send('/sessions', { input: '' })).status, 400)
})
