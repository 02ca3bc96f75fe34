import { memoryStore, runSession, type SessionStore } from '../../src/index.js'
import { distant } from '../support/distant.js'
import { stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const stores = [
  ['synchronously', (near: SessionStore) => near],
  ['asynchronously', (near: SessionStore) => distant(near)],
] as const

/** A run whose sub-agent asks about a payment, and the sub-agent's session. */
async function asking(reached: (near: SessionStore) => SessionStore) {
  const near = memoryStore()
  const store = reached(near)
  const paid: unknown[] = []
  const pay = tool('pay', (input) => void paid.push(input), { needsApproval: true })
  const below = await stage([call('pay', { n: 1 }), text('Paid.')], { store, tools: [pay] })
  const payer = below.agent.asTool({ name: 'payer', description: 'Pays.' }) as never
  const above = await stage([call('payer', { task: 'Pay.' }), text('Done.')], { store, tools: [payer] })
  const { pending = [] } = await above.agent.run('Go.', { session: 'ann' }).result
  const child = near.list({ children: true }).find(({ id }) => id !== 'ann')?.id as string
  /** All stored data. */
  const contents = (): string =>
    JSON.stringify(['ann', child].map((id) => [near.read(id).length, near.inbox?.read(id)]))
  return { store, above, below, child, paid, pending, contents }
}

const refusal = { code: 'sub_agent_session', message: expect.stringContaining("session 'ann'") }

describe.each(sampledKinds(stores))(
  'the session of a sub-agent, in a store that answers %s',
  (_, reached) => {
    it('accepts no direct answers, because the parent session has the question', async () => {
      const { store, above, below, child, paid, pending, contents } = await asking(reached)
      const before = contents()
      for (const agent of [above.agent, below.agent]) {
        for (const message of [
          { type: 'approve', callId: 'call_1' },
          { type: 'reject', callId: 'call_1', why: 'No.' },
          { type: 'toolOutput', callId: 'call_1', value: 1 },
          { type: 'approve', callId: 'call_1', grant: {} },
          { type: 'grant', tool: 'pay', when: {} },
          { type: 'revoke', grant: 'none' },
          { type: 'revoke', callId: 'call_1' },
        ] as const) {
          await expect(agent.send(child, message)).rejects.toMatchObject(refusal)
        }
      }
      expect(contents()).toBe(before)
      await above.agent.send('ann', { type: 'approve', ...pending[0] } as never)
      const { state, output } = await (await above.agent.resume('ann')).result
      expect([state, output, paid.length]).toEqual(['COMPLETED', 'Done.', 1])
      expect(await store.get(child)).toMatchObject({ holder: null })
    })

    it('asks about each call, because grants cover only calls that an agent runs itself', async () => {
      const { above, child, paid, pending, contents } = await asking(reached)
      const before = contents()
      await expect(
        above.agent.send('ann', { type: 'approve', ...pending[0], grant: {} } as never),
      ).rejects.toMatchObject({ code: 'invalid_input', subject: 'grant' })
      expect(contents()).toBe(before)
      await above.agent.send('ann', { type: 'grant', tool: 'pay', when: {} })
      const resumed = await (await above.agent.resume('ann')).result
      expect([resumed.state, paid]).toEqual(['WAITING_FOR_INPUT', []])
      expect((await above.agent.replay(child)).grants).toBeUndefined()
    })

    it('belongs to the calling run, and no agent starts another run or branch in it', async () => {
      const { above, below, child, contents, pending } = await asking(reached)
      await above.agent.send('ann', { type: 'approve', ...pending[0] } as never)
      await (await above.agent.resume('ann')).result
      const [before, requests] = [contents(), above.requests.length + below.requests.length]
      for (const { agent } of [above, below]) {
        const attempts = [
          () => agent.run('Again.', { session: child }).result,
          () => agent.branch(child, { from: 'm1' }).result,
          () => runSession(agent, { session: child, input: 'Again.', turn: 2 }),
        ]
        for (const attempt of attempts) {
          await expect(attempt()).rejects.toMatchObject(refusal)
        }
      }
      expect(contents()).toBe(before)
      expect(above.requests.length + below.requests.length).toBe(requests)
      // A copy of it is an independent session.
      const copy = await below.agent.fork(child)
      expect(await below.agent.run('Again.', { session: copy }).result).toMatchObject({ sessionId: copy })
    })
  },
)
