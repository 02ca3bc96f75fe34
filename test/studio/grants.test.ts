import { createAgent, memoryStore, type Run, type SessionStore } from '../../src/index.js'
import type { MomentView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { obedient } from '../support/granting.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'
import { visit } from './visitor.js'

const pay = (n: number) => JSON.stringify([['pay', { n }]])

/** A session whose run waits for the approval of a payment, and a studio of ann. */
async function asking() {
  const store = memoryStore()
  const paid: unknown[] = []
  const tools = [tool('pay', (input) => void paid.push(input), { needsApproval: true })]
  const agent = createAgent({ model: obedient, store: store as SessionStore, tools })
  const order = async (n: number): Promise<string> => {
    const run = agent.run(pay(n), { session: 's' }) as Run
    return (await run.result).state
  }
  await order(1)
  const visitor = await visit({ store, agent, by: 'ann' })
  const view = () => visitor.get<SessionView>(paths.session('s'))
  const last = async (): Promise<MomentView> =>
    visitor.get<MomentView>(paths.moment('s', (await view()).rows.length))
  const answer = (body: object) => visitor.post(paths.answers('s'), body)
  const approve = async (more: object = {}) => {
    const [{ callId, fingerprint } = { callId: '', fingerprint: '' }] = (await last()).pending
    return answer({ type: 'approve', callId, fingerprint, ...more })
  }
  const becomes = (state: string) => until(() => store.get('s')?.summary?.state === state)
  return { store, agent, paid, order, view, last, answer, approve, becomes }
}

test('an approval can approve later calls with its arguments, until it is revoked', async () => {
  const { paid, order, view, last, answer, approve, becomes, store } = await asking()
  expect((await last()).pending).toMatchObject([{ isGrantable: true }])
  expect(await approve({ grant: {} })).toMatchObject({ status: 200 })
  await becomes('COMPLETED')
  const { grants, actions } = await last()
  expect(grants).toMatchObject([
    { tool: 'pay', arguments: '{"n":1}', isExact: true, usesLeft: null, givers: ['ann'], ended: null },
  ])
  expect(actions).toEqual(['revoke'])
  expect(await order(1)).toBe('COMPLETED')
  expect(paid).toEqual([{ n: 1 }, { n: 1 }])

  const revoke = { type: 'revoke', grant: grants[0]!.id }
  const records = store.read('s').length
  expect(await answer(revoke)).toMatchObject({ status: 200 })
  // The next run reads it, and the page shows it now.
  expect(store.read('s')).toHaveLength(records)
  expect(await last()).toMatchObject({ grants: [{ ended: 'revoked' }], actions: [] })
  expect(await answer(revoke)).toMatchObject({ status: 409, error: { code: 'unknown_grant' } })
  expect(await order(1)).toBe('WAITING_FOR_INPUT')
  expect(paid).toHaveLength(2)
  expect(await last()).toMatchObject({
    grants: [{ ended: 'revoked' }],
    actions: ['approve', 'reject', 'cancel'],
  })
  const labels = (await view()).rows.map(({ label }) => label)
  expect(labels).toEqual(expect.arrayContaining(['approved pay, with a grant', 'grant revoked']))
  expect(JSON.stringify(store.read('s'))).toContain(
    String.raw`\"grant\":\"${grants[0]!.id}\",\"by\":{\"id\":\"ann\"}`,
  )
})

test('grants given elsewhere are listed with their limits, and why they have ended', async () => {
  const { agent, order, last, paid } = await asking()
  const until = Date.UTC(2100, 0, 1)
  await agent.send('s', { type: 'grant', tool: 'pay', when: { n: { max: 9 } }, uses: 2, until, by: 'bob' })
  // No run has read it.
  expect(await last()).toMatchObject({
    grants: [
      { tool: 'pay', arguments: '{"n":{"max":9}}', isExact: false, usesLeft: 2, givers: ['bob'], until },
    ],
    actions: ['approve', 'reject', 'cancel', 'revoke'],
  })
  // The grant lets the waiting call start.
  expect((await ((await agent.resume('s')) as Run).result).state).toBe('COMPLETED')
  expect(await last()).toMatchObject({ grants: [{ usesLeft: 1, uses: 2, ended: null }], actions: ['revoke'] })
  expect(await order(2)).toBe('COMPLETED')
  expect(await order(3)).toBe('WAITING_FOR_INPUT')
  expect(await last()).toMatchObject({
    grants: [{ usesLeft: 0, uses: 2, ended: 'used up' }],
    actions: ['approve', 'reject', 'cancel'],
  })
  expect(paid).toEqual([{ n: 1 }, { n: 2 }])
})

test('a request that names no grant, or limits of its own, changes nothing', async () => {
  const { answer, approve, store } = await asking()
  const before = JSON.stringify(store.read('s'))
  expect(await answer({ type: 'revoke', grant: 'none' })).toMatchObject({ error: { code: 'unknown_grant' } })
  expect(await answer({ type: 'revoke', grant: 5 })).toMatchObject({ error: { code: 'invalid_input' } })
  expect(await answer({ type: 'revoke' })).toMatchObject({ error: { code: 'invalid_input' } })
  expect(await approve({ grant: { when: {} } })).toMatchObject({ error: { code: 'invalid_input' } })
  expect(JSON.stringify(store.read('s'))).toBe(before)
  expect(store.inbox?.read('s')).toEqual([])
})
