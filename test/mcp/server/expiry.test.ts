import { createAgent, defineAgents, memoryStore, systemClock } from '../../../src/index.js'
import { mcpServer } from '../../../src/mcp/server/index.js'
import { tool } from '../../support/tools.js'
import { connect, lastResult, scriptedModel } from './support.js'

const minute = 60_000

test('a form that comes back too late ends the question', async () => {
  let passed = 0
  const now = (): number => Date.now() + passed
  const paid: unknown[] = []
  const agent = createAgent({
    model: scriptedModel((request) => lastResult(request) ?? [{ name: 'pay', arguments: '{"n":17}' }]),
    store: memoryStore({ now }),
    clock: { ...systemClock, now, elapsed: now },
    tools: [tool('pay', (input) => void paid.push(input), { needsApproval: true })],
    approvals: { expiresMs: 15 * minute },
  })
  const handler = mcpServer({ agents: defineAgents({ clerk: agent }), authorize: () => 'ann', pollMs: 10 })
  const answer = () => {
    passed += 16 * minute
    return { action: 'accept', content: { confirm: true } }
  }
  const client = await connect(handler, { answer })
  const result = await client.callTool({ name: 'clerk', arguments: { message: 'Pay 17.' } })
  expect(result).toMatchObject({
    content: [{ text: 'Not executed: no decision came within 15 minutes. This is not a refusal.' }],
  })
  expect(paid).toEqual([])
})
