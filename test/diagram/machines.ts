import { and, createMachine, fromPromise, not, setup } from 'xstate'

/** Features that the agent machine does not use: timers, parallel regions, combined guards, inline actors, awkward names. */
export const workshop = setup({
  guards: { isOpen: () => true, 'is "late" & <old>': () => false },
  actors: { fetchIt: fromPromise(() => Promise.resolve()) },
}).createMachine({
  id: 'work shop',
  description: 'All that a <machine> & "its" author can think of; # {even} this: 100%',
  initial: 'a state',
  states: {
    'a state': {
      entry: function greet() {
        return undefined
      },
      after: { 1000: { target: 'a-state', actions: () => undefined } },
      on: {
        'go.on': { guard: and(['isOpen', not('is "late" & <old>')]), target: 'both' },
        'go.*': { guard: () => true },
      },
    },
    'a-state': {
      invoke: { src: 'fetchIt', id: 'first', onDone: 'both', onError: { target: 'a state', reenter: true } },
    },
    both: {
      type: 'parallel',
      states: { left: { initial: 'on', states: { on: {}, off: { type: 'final' } } }, right: {} },
      onDone: 'gone',
    },
    gone: { type: 'final' },
  },
})

export const single = createMachine({ id: 'single' })
