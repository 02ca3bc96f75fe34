import { createMachine } from 'xstate'
import { createBareEvents } from '../../src/testing/explore-options.js'

test('every declared event is listed once, under its name, without automatic events', () => {
  const machine = createMachine({
    initial: 'a',
    states: {
      a: {
        on: { GO: 'b', '*': 'b', 'tool.*': 'b' },
        after: { 100: 'b' },
        invoke: { id: 'model', src: 'model', onDone: 'b', onError: 'b' },
      },
      b: { on: { GO: 'a' }, always: { guard: () => false, target: 'a' } },
    },
  })
  expect(createBareEvents(machine)).toEqual({
    GO: { type: 'GO' },
    'model done': { type: 'xstate.done.actor.model', output: undefined, actorId: 'model' },
    'model failed': { type: 'xstate.error.actor.model', error: undefined, actorId: 'model' },
  })
})
