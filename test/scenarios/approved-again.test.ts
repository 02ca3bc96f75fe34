import { createAgent, memoryStore, type SessionMessage } from '../../src/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

/** Each process pays and hangs, so that the next one finds an interrupted payment. */
function setUp() {
  let now = 1_790_000_000_000
  const store = memoryStore({ now: () => now })
  const paid: number[] = []
  const open = (process: number) => {
    const model = new ManualModel()
    const pay = tool(
      'pay',
      () => {
        paid.push(process)
        return new Promise(() => undefined)
      },
      { needsApproval: true },
    )
    const agent = createAgent({ model, store, tools: [pay], toolCalls: { onInterrupted: 'approval' } })
    return { model, agent }
  }
  /** The process's lease expires, as after kill -9. */
  const kill = () => void (now += 60_000)
  return { store, paid, open, kill }
}

const tries = 200

it('a repeated approval lets an interrupted call run once', async () => {
  const { store, paid, open, kill } = setUp()
  const first = open(1)
  const run = first.agent.run('Pay.', { session: 's' })
  for (let i = 0; i < tries && !first.model.pending; i += 1) await settled()
  first.model.pending?.answer({ toolCalls: [call('a', 'pay')], finishReason: 'tool_calls' })
  const [question] = (await run.result).pending ?? []
  const approvals: SessionMessage[] = [
    { type: 'approve', callId: 'a', fingerprint: question?.fingerprint ?? '' },
  ]
  run.approve('a', undefined, { fingerprint: question?.fingerprint ?? '' })
  for (let i = 0; i < tries && paid.length === 0; i += 1) await settled()
  expect(paid).toEqual([1])
  // Each process dies during the payment. The next one asks a person again and receives all earlier answers
  // again.
  for (const process of [2, 3]) {
    kill()
    const next = open(process)
    const resumed = await next.agent.resume('s')
    const { pending, state } = await resumed.result
    expect(state).toBe('WAITING_FOR_INPUT')
    expect(pending).toMatchObject([{ callId: 'a', interrupted: true }])
    for (const approval of approvals)
      await expect(next.agent.send('s', approval)).rejects.toMatchObject({ code: 'stale_answer' })
    const former = approvals.at(-1) as { fingerprint: string }
    expect(() => resumed.approve('a', undefined, { fingerprint: former.fingerprint })).toThrow(
      expect.objectContaining({ code: 'stale_answer' }),
    )
    for (let i = 0; i < 20; i += 1) await settled()
    expect(paid).toHaveLength(process - 1)
    const [again] = pending ?? []
    approvals.push({ type: 'approve', callId: 'a', fingerprint: again?.fingerprint ?? '' })
    resumed.approve('a', undefined, { fingerprint: again?.fingerprint ?? '' })
    for (let i = 0; i < tries && paid.length < process; i += 1) await settled()
    expect(paid).toHaveLength(process)
  }
  expect(new Set(approvals.map((one) => JSON.stringify(one))).size).toBe(3)
  expect(checkSessionLog(store.read('s'))).toBeNull()
})
