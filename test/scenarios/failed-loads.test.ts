import { jest } from '@jest/globals'
import { type AgentEvent, type AgentOptions, createAgent, type Policy } from '../../src/index.js'
import { book } from '../support/asking.js'
import { createOneCallModel } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

// In a separate file, because code that is loaded on use cannot be loaded here.
const offline = (): never => {
  throw new Error('Offline.')
}

jest.unstable_mockModule('../../src/core/tools/ask-policies.js', offline)
jest.unstable_mockModule('../../src/core/sessions/elicitation-answer.js', offline)
jest.unstable_mockModule('../../src/core/effects/sub-agent-batch.js', offline)

/** A run that calls one tool, then answers. */
function play(name: string, options: Partial<AgentOptions>) {
  const agent = createAgent({ model: createOneCallModel(name, () => 'Done.', { task: 'Go.' }), ...options })
  const run = agent.run('Go.', { session: 's' })
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => events.push(event))
  const listResults = () =>
    events.flatMap((event) => (event.type === 'tool_result' ? [[event.status, event.content]] : []))
  const listDecisions = () =>
    events.flatMap((event) =>
      event.type === 'policy_decided' ? [[event.policy, event.decision, event.rule, event.shadow]] : [],
    )
  return { run, listResults, listDecisions }
}

it('The model reads that a sub-agent could not be loaded', async () => {
  const child = createAgent({ model: createOneCallModel('none') })
  const research = child.asTool({ name: 'research', description: 'Finds out.' })
  const { run, listResults } = play('research', { tools: [research] })
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(listResults()).toEqual([['error', 'The sub-agent could not be loaded: Offline.']])
})

it('The model reads that a question could not be loaded', async () => {
  const { run, listResults } = play('book', { tools: [book()] })
  expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(listResults()).toEqual([['error', 'The question could not be loaded: Offline.']])
})

it('Policies that could not be loaded deny the call, and shadow policies only record it', async () => {
  const pay = tool('pay')
  const policy: Policy = { id: 'payments', decide: () => 'allow' }
  const denied = play('pay', { tools: [pay], policy })
  expect(await denied.run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(denied.listResults()).toEqual([
    ['denied', 'Not executed: the policy for this call could not be read. Try again later.'],
  ])
  expect(denied.listDecisions()).toEqual([['payments', 'deny', 'policy_error', undefined]])
  expect(pay.inputs).toEqual([])
  const shadowed = play('pay', { tools: [pay], policy: { ...policy, shadow: true } })
  expect((await shadowed.run.result).state).toBe('COMPLETED')
  expect(shadowed.listDecisions()).toEqual([['payments', 'deny', 'policy_error', true]])
  expect(pay.inputs).toEqual([{ task: 'Go.' }])
})

it('A person is asked if the decision of needsApproval could not be read', async () => {
  const pay = tool('pay', () => 'ok', { needsApproval: () => 'deny' })
  const { run } = play('pay', { tools: [pay] })
  expect(await run.result).toMatchObject({ state: 'WAITING_FOR_INPUT', pending: [{ needs: 'approval' }] })
})
