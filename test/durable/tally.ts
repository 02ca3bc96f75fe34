import { assign, setup } from 'xstate'

/** Counts the events of each sender, and the lost, duplicate and misordered events. */
export const tallyMachine = setup({
  types: {
    context: {} as { last: Record<string, number>; faults: number },
    events: {} as { type: 'COUNT'; from: string; n: number },
  },
}).createMachine({
  id: 'tally',
  context: { last: {}, faults: 0 },
  initial: 'open',
  states: {
    open: {
      on: {
        COUNT: {
          actions: assign(({ context: { last, faults }, event: { from, n } }) => ({
            last: { ...last, [from]: n },
            faults: faults + ((last[from] ?? 0) + 1 === n ? 0 : 1),
          })),
        },
      },
    },
  },
})
