import { memoryStore, openaiChat } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { listRunSteps } from '../../src/studio/run-steps.js'
import type { SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { createDesk } from './rehearsed.js'
import { visit } from './visitor.js'

test('a session with a handoff names the next agent in its step, and the answering agent in its verdict', async () => {
  const rehearsal = await startRehearsal({
    turns: [
      { toolCalls: [{ name: 'transfer_to_billing', arguments: {} }] },
      { toolCalls: [{ name: 'refund', arguments: { bill: 'B7' } }] },
      { text: 'You have your money back.' },
    ],
  })
  const store = memoryStore()
  const model = openaiChat({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' })
  await createDesk({ model, store }).run('I paid twice.', { session: 's' }).result
  const view = await (await visit({ store })).get<SessionView>(paths.session('s'))
  expect(listRunSteps(view).map(({ handedTo }) => handedTo)).toEqual(['billing', null, null])
  expect(view.verdict.text).toBe('The agent billing ended its turn with an answer.')
  await rehearsal.close()
})
