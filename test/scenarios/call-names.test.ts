import { createAgent } from '../../src/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

const turn = (...calls: ReturnType<typeof call>[]) => ({
  toolCalls: calls,
  finishReason: 'tool_calls' as const,
})

/** Waits for the next request to the model. */
async function request(model: ManualModel) {
  for (let i = 0; i < 1000 && !model.pending; i += 1) await settled()
  if (!model.pending) throw new Error('Nobody asks the model.')
  return model.pending
}

test.each([
  ['before', ['x/y', 'x']],
  ['after', ['x', 'x/y']],
])(
  "an answer to a call with the name of a sub-agent's call, %s that call, is for another call",
  async (_, [first, second]) => {
    const paid: unknown[] = []
    const pay = tool('pay', ({ n }) => void paid.push(n), { needsApproval: true })
    const [own, above] = [new ManualModel(), new ManualModel()]
    const helper = createAgent({ model: own, tools: [pay] }).asTool({ name: 'helper', description: 'Helps.' })
    const agent = createAgent({ model: above, tools: [pay, helper] })
    const run = agent.run('Go.')
    const both = {
      x: call('x', 'helper', { task: 'Pay.' }),
      'x/y': call('x/y', 'pay', { n: 100 }),
    }
    const answer = turn(both[first as 'x'], both[second as 'x'])
    ;(await request(above)).answer(answer)
    ;(await request(own)).answer(turn(call('y', 'pay', { n: 200 })))
    const { pending = [] } = await run.result
    expect(new Set(pending.map(({ callId }) => callId)).size).toBe(2)
    const ofHelper = pending.find(({ path }) => path)
    run.approve(ofHelper?.callId ?? '')
    run.reject(pending.find(({ path }) => !path)?.callId ?? '')
    ;(await request(own)).answer({ text: 'Paid.' })
    ;(await request(above)).answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(paid).toEqual([200])
  },
)
