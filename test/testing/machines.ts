import { assign, createMachine, fromCallback, fromPromise, setup, spawnChild } from 'xstate'

/** A small agent loop with nesting, always, promise and callback actors, history, a spawned actor, a counter, input. */
export const loop = setup({
  types: {} as {
    context: { steps: number; maxSteps: number; shielded: boolean }
    input: { maxSteps: number; shielded: boolean }
    events:
      | { type: 'CANCEL' }
      | { type: 'PAUSE' }
      | { type: 'RESUME' }
      | { type: 'TOOL_RESULT'; ok: boolean }
      | { type: 'BATCH_DONE' }
  },
  actors: {
    model: fromPromise(() => Promise.resolve({ calls: 0 })),
    shield: fromPromise(() => Promise.resolve()),
    tools: fromCallback(() => undefined),
    deadline: fromCallback(() => undefined),
  },
  guards: {
    isShielded: ({ context }) => context.shielded,
    isAtCap: ({ context }) => context.steps >= context.maxSteps,
    hasCalls: ({ event }) => (event as unknown as { output: { calls: number } }).output.calls > 0,
    isImpossible: () => false,
  },
  actions: {
    startDeadline: spawnChild('deadline', { id: 'deadline' }),
    countStep: assign({ steps: ({ context }) => context.steps + 1 }),
  },
}).createMachine({
  id: 'loop',
  context: ({ input }) => ({ steps: 0, ...input }),
  initial: 'running',
  entry: 'startDeadline',
  on: { CANCEL: '.cancelled' },
  states: {
    running: {
      initial: 'starting',
      on: { PAUSE: 'paused' },
      states: {
        last: { type: 'history' },
        starting: { always: [{ guard: 'isShielded', target: 'screening' }, { target: 'checking' }] },
        screening: { invoke: { id: 'shield', src: 'shield', onDone: 'checking', onError: '#loop.failed' } },
        checking: { always: [{ guard: 'isAtCap', target: '#loop.capped' }, { target: 'requesting' }] },
        requesting: {
          invoke: {
            id: 'model',
            src: 'model',
            onDone: [
              { guard: 'hasCalls', target: 'executing', actions: 'countStep' },
              { target: '#loop.completed', actions: 'countStep' },
            ],
            onError: '#loop.failed',
          },
          after: { 1000: '#loop.failed' },
        },
        executing: {
          invoke: { id: 'tools', src: 'tools' },
          on: { TOOL_RESULT: {}, BATCH_DONE: 'checking' },
        },
      },
    },
    paused: { on: { RESUME: 'running.last' } },
    completed: { type: 'final' },
    cancelled: { type: 'final' },
    capped: { type: 'final' },
    failed: { type: 'final' },
  },
})

/** An unbounded counter. */
export const counter = createMachine({
  id: 'counter',
  context: { ticks: 0, nested: { total: 0 }, still: 'same', sessionId: 'of the app' },
  on: {
    TICK: {
      actions: assign({
        ticks: ({ context }) => context.ticks + 1,
        nested: ({ context }) => ({ total: context.nested.total + 2 }),
      }),
    },
  },
})

/** Unreachable parts, each for a different reason. */
export const gaps = setup({
  guards: { isOpen: () => false, isLit: () => true },
}).createMachine({
  id: 'gaps',
  initial: 'hall',
  states: {
    hall: {
      on: {
        ENTER: [
          { guard: 'isOpen', target: 'vault' },
          { guard: 'isLit', target: 'room' },
          { target: 'cellar' },
        ],
        RING: 'room',
      },
    },
    room: { on: { BACK: 'hall' } },
    vault: { on: { BACK: 'hall' } },
    cellar: {},
  },
})

/** Two paths to `broken`: one of four events, one of two. */
export const detour = createMachine({
  id: 'detour',
  initial: 'a',
  states: {
    a: { on: { LONG: 'b', SHORT: 'd' } },
    b: { on: { ON: 'c' } },
    c: { on: { ON: 'd2' } },
    d2: { on: { ON: 'broken' } },
    d: { on: { ON: 'broken', HOME: 'a' } },
    broken: {},
  },
})
