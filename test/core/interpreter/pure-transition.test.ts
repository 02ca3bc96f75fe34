import { jest } from '@jest/globals'
import { type AnyMachineSnapshot, initialTransition, setup, transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import { createPureTransition } from '../../../src/core/interpreter/table-transition.js'
import { createAgent, memoryStore, type ModelProvider } from '../../../src/index.js'
import { plainAnswer } from '../../support/manual-model.js'
import { createRandom, EventPool, inputs } from './random-walk.js'
import { findDifference } from './side-by-side.js'
import { sampled } from '../../support/extent.js'

test('an event leads to the snapshot and the actions that the transition function of XState returns', () => {
  const takeEvent = createPureTransition(agentMachine)
  const random = createRandom(7)
  const events = new EventPool(random)
  let count = 0
  for (const input of Object.values(inputs)) {
    let [snapshot] = initialTransition(agentMachine, input)
    for (let length = 0; length < sampled(40); length++) {
      const event = events.draw(snapshot as unknown as AnyMachineSnapshot) as never
      const [expected, actionsByXState] = transition(agentMachine, snapshot, event)
      const [actual, actions] = takeEvent(snapshot, event)
      expect(findDifference(expected, actual, 'snapshot')).toBeNull()
      expect(actions.map(toShown)).toEqual(actionsByXState.map(toShown))
      snapshot = actual
      count++
    }
  }
  expect(count).toBeGreaterThan(sampled(500))
})

/** Each has a different `self` actor. */
function toShown({ type, params }: { type: string; params?: unknown }): unknown {
  const { event, id, src } = (params ?? {}) as Record<string, unknown>
  return { type, event, id, src }
}

test('a pure transition starts nothing', () => {
  const begun: string[] = []
  const machine = setup({
    types: { events: {} as { type: 'GO' } },
    actions: { note: () => void begun.push('action') },
  }).createMachine({ initial: 'off', states: { off: { on: { GO: 'on' } }, on: { entry: 'note' } } })
  const [first] = initialTransition(machine)
  const [second, actions] = createPureTransition(machine)(first, { type: 'GO' })
  expect(second.value).toBe('on')
  expect(actions.map(({ type }) => type)).toEqual(['note'])
  expect(begun).toEqual([])
})

test.each(['tables', 'xstate'] as const)(
  'the interpreter of an agent also reads the log of a continued session: %s',
  async (interpreter) => {
    const store = memoryStore()
    const model: ModelProvider = {
      provider: 'scripted',
      model: 'scripted',
      request: async () => ({ ...plainAnswer, text: 'Which one?', finishReason: 'stop' }),
    }
    const options = { model, store, interactive: true }
    await createAgent(options).run('Go.', { session: 's' }).result
    const byXState = jest.spyOn(agentMachine, 'transition')
    try {
      const run = await createAgent({ ...options, interpreter }).resume('s')
      expect(run.state).toBe('WAITING_FOR_INPUT')
      expect(byXState.mock.calls.length > 0).toBe(interpreter === 'xstate')
    } finally {
      byXState.mockRestore()
    }
  },
)
