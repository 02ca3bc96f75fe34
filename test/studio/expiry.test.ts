import { memoryStore } from '../../src/index.js'
import type { MomentView, SessionsView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { until } from '../support/play.js'
import { askExpiring } from './rehearsed.js'
import { visit } from './visitor.js'

const expiresMs = 3_600_000

async function waiting(options: Parameters<typeof askExpiring>[2]) {
  const store = memoryStore()
  const { agent, paid, close } = await askExpiring(store, 's', options)
  const visitor = await visit({ store, agent })
  const view = () => visitor.get<SessionView>(paths.session('s'))
  const list = async () => (await visitor.get<SessionsView>(paths.sessions)).sessions
  const pending = async () => {
    const { rows } = await view()
    return (await visitor.get<MomentView>(paths.moment('s', rows.length))).pending
  }
  const resume = () => visitor.post(paths.answers('s'), { type: 'resume' })
  return { store, view, list, pending, resume, paid, close }
}

test('an expiring question shows its deadline in the list, in the verdict and at the call', async () => {
  const askedAt = Date.UTC(2100, 4, 1, 11)
  const { view, list, pending, resume, close } = await waiting({ askedAt, expiresMs, onExpiry: 'pause' })
  const wakeAt = askedAt + expiresMs
  const waits = { id: 's', status: 'waiting', state: 'WAITING_FOR_INPUT', wakeAt }
  // Before the log is read, and after.
  expect(await list()).toMatchObject([waits])
  const { verdict, session } = await view()
  expect(verdict.text).toBe('Waiting for you to approve pay until 2100-05-01 12:00:00 UTC.')
  expect(session).toMatchObject(waits)
  expect(await list()).toMatchObject([waits])
  expect(await pending()).toMatchObject([{ callId: 'p', expiresAt: wakeAt, onExpiry: 'pause' }])
  expect(await resume()).toMatchObject({ status: 409, error: { code: 'wrong_state' } })
  await close()
})

test.each([
  ['reject', 'COMPLETED', 'The model ended its turn with an answer.'],
  ['pause', 'PAUSED', 'It was paused because a question expired and continues when it is resumed.'],
  ['cancel', 'CANCELLED', 'It was cancelled because a question expired.'],
] as const)('an expired question ends when the session is resumed: %s', async (onExpiry, state, text) => {
  const askedAt = Date.UTC(2026, 0, 1)
  const { store, view, pending, resume, paid, close } = await waiting({ askedAt, expiresMs, onExpiry })
  expect(await pending()).toMatchObject([{ expiresAt: askedAt + expiresMs }])
  expect((await view()).verdict.text).toBe(
    'Waited for you to approve pay. The question expired at 2026-01-01 01:00:00 UTC.',
  )
  expect(await resume()).toMatchObject({ status: 200 })
  await until(() => store.get('s')?.summary?.state === state)
  const { verdict, rows } = await view()
  expect(verdict.text).toBe(text)
  expect(rows.map(({ label }) => label)).toContain('question expired')
  expect(paid).toEqual([])
  await close()
})
