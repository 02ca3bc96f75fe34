import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openaiChat } from 'statewright'
import { startRehearsal, type Rehearsal, type Turn } from 'statewright/rehearsal'
import { createOrderAgent } from './agent.js'

const open: Rehearsal[] = []
after(() => Promise.all(open.map((rehearsal) => rehearsal.close())))

/** The agent with a scripted model. The model rejects any history that a provider would reject. */
async function rehearse(...turns: Turn[]) {
  const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
  open.push(rehearsal)
  return createOrderAgent(openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' }))
}

test('looks up an order and answers with its status', async () => {
  const agent = await rehearse(
    { toolCalls: [{ name: 'find_order', arguments: { id: '1002' } }] },
    { text: 'It is on its way.', expect: { toolResultsInclude: ['on its way'] } },
  )
  const { state, output, steps } = await agent.run('Where is order 1002?').result
  assert.deepEqual([state, output, steps], ['COMPLETED', 'It is on its way.', 2])
})

test('refunds nothing until a person approves', async () => {
  const agent = await rehearse(
    { toolCalls: [{ name: 'refund', arguments: { id: '1001' } }] },
    { text: 'I did not refund anything.', expect: { toolResultsInclude: ['Not today.'] } },
  )
  const run = agent.run('Refund order 1001.')
  const waiting = await run.result
  assert.equal(waiting.state, 'WAITING_FOR_INPUT')
  for (const call of waiting.pending ?? []) run.reject(call, 'Not today.')
  assert.equal((await run.result).output, 'I did not refund anything.')
})

test('stops an agent that repeats itself forever', async () => {
  const turn = { toolCalls: [{ name: 'find_order', arguments: { id: '1001' } }] }
  const agent = await rehearse(...Array.from({ length: 20 }, () => turn))
  const { state, reason } = await agent.run('Where is order 1001?').result
  assert.notEqual(state, 'COMPLETED', reason)
})
