import { z } from 'zod'
import { createAgent, defineTool, handoff, memoryStore, openaiChat } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { listRunSteps } from '../../src/studio/client/run-steps.js'
import type { SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { visit } from './visitor.js'

test('a session that was handed over says to whom in its step, and who answered in its verdict', async () => {
  const rehearsal = await startRehearsal({
    turns: [
      { toolCalls: [{ name: 'transfer_to_billing', arguments: {} }] },
      { toolCalls: [{ name: 'refund', arguments: { bill: 'B7' } }] },
      { text: 'You have your money back.' },
    ],
  })
  const store = memoryStore()
  const model = openaiChat({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' })
  const refund = defineTool({
    name: 'refund',
    description: 'Pays a bill back.',
    input: z.object({ bill: z.string() }),
    execute: () => 'It is paid back.',
  })
  const billing = createAgent({ model, tools: [refund] })
  const tools = [handoff(billing, { name: 'billing', description: 'Knows every bill.' })]
  await createAgent({ model, store, tools }).run('I paid twice.', { session: 's' }).result
  const view = await (await visit({ store })).get<SessionView>(paths.session('s'))
  expect(listRunSteps(view).map(({ handedTo }) => handedTo)).toEqual(['billing', null, null])
  expect(view.verdict.text).toBe('The agent billing ended its turn with an answer.')
  await rehearsal.close()
})
