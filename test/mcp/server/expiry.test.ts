import { createAgent, defineAgents, memoryStore, systemClock } from '../../../src/index.js'
import { mcpServer } from '../../../src/mcp/server/index.js'
import { tool } from '../../support/tools.js'
import { connect, lastResult, scriptedModel } from './support.js'

const minute = 60_000

const refused = {
  content: [{ text: 'Not executed: no decision arrived within 15 minutes. This is not a refusal.' }],
}

/** Servers of one store. `pass` lets time pass without a timer. */
function setUp() {
  let passed = 0
  const now = (): number => Date.now() + passed
  const paid: unknown[] = []
  const store = memoryStore({ now })
  const open = () => {
    const agent = createAgent({
      model: scriptedModel((request) => lastResult(request) ?? [{ name: 'pay', arguments: '{"n":17}' }]),
      store,
      clock: { ...systemClock, now, elapsed: now },
      tools: [tool('pay', (input) => void paid.push(input), { needsApproval: true })],
      approvals: { expiresMs: 15 * minute },
    })
    return mcpServer({ agents: defineAgents({ clerk: agent }), authorize: () => 'ann', pollMs: 10 })
  }
  return { open, paid, pass: (ms: number) => void (passed += ms) }
}

test('a form that is returned too late closes the question', async () => {
  const { open, paid, pass } = setUp()
  const answer = () => {
    pass(16 * minute)
    return { action: 'accept', content: { confirm: true } }
  }
  const client = await connect(open(), { answer })
  expect(await client.callTool({ name: 'clerk', arguments: { message: 'Pay 17.' } })).toMatchObject(refused)
  expect(paid).toEqual([])
})

test('a call that is repeated at another server closes the question', async () => {
  const { open, paid, pass } = setUp()
  const call = { name: 'clerk', arguments: { message: 'Pay 17.', session: 'june' } }
  const ask = async (): Promise<unknown> => (await connect(open())).callTool(call)
  const waits = { content: [{ text: expect.stringContaining('waiting for a person') as string }] }
  expect(await ask()).toMatchObject(waits)
  pass(14 * minute)
  expect(await ask()).toMatchObject(waits)
  pass(2 * minute)
  await ask()
  expect(await ask()).toMatchObject(refused)
  expect(paid).toEqual([])
})
