import * as fc from 'fast-check'
import { createActor, enqueueActions, setup, transition } from 'xstate'
import { toAction, type Update } from '../../machines/agent/update-action.js'
import type { EmittedEvent } from '../../machines/agent/announcements.js'
import {
  type AgentContext,
  createContext,
  noFeatures,
  type AgentMachineEvent,
} from '../../machines/agent/context.js'
import { defaultConfig } from '../../src/core/config/defaults.js'
import { createSession } from '../../src/index.js'

const { state } = createSession()
const initial = createContext({
  ...state,
  now: 0,
  runId: 'run',
  sessionId: 'session',
  config: defaultConfig,
  tools: {},
  features: noFeatures,
  input: [],
})

/** The parameters describe the update. */
interface Params {
  emitted: string[]
  patch: Partial<AgentContext> | null
}

const update: Update<Params> = (context, event, tell, { emitted, patch }) => {
  for (const message of emitted) tell({ type: 'warning', code: `${event.type}.${context.steps}`, message })
  return patch ? { ...patch, lastMessageNumber: context.lastMessageNumber + 1 } : undefined
}

/** The update as XState's built-in actions perform it. */
const asXStateDoes = enqueueActions<
  AgentContext,
  AgentMachineEvent,
  Params,
  AgentMachineEvent,
  never,
  never,
  never,
  never,
  EmittedEvent
>(({ context, event, enqueue }, params) => {
  const patch = update(context, event, (announcement) => enqueue.emit(announcement), params)
  if (patch !== undefined) enqueue.assign(patch)
})

/** Two exit actions, three transition actions, and one entry action. */
function machineOf(action: typeof asXStateDoes, [one, two, three]: [Params, Params, Params]) {
  return setup({
    types: {} as { context: AgentContext; events: AgentMachineEvent; emitted: EmittedEvent },
    actions: { action },
  }).createMachine({
    context: initial,
    initial: 'before',
    states: {
      before: {
        exit: [
          { type: 'action', params: one },
          { type: 'action', params: two },
        ],
        on: {
          PAUSE: {
            target: 'after',
            actions: [
              { type: 'action', params: three },
              { type: 'action', params: () => one },
              { type: 'action', params: two },
            ],
          },
        },
      },
      after: { entry: { type: 'action', params: three }, tags: 'tag' },
    },
  })
}

const params: fc.Arbitrary<Params> = fc.record({
  emitted: fc.array(fc.string(), { maxLength: 3 }),
  patch: fc.option(
    fc.record({ steps: fc.nat(), output: fc.string(), retrieved: fc.constant([]) }, { requiredKeys: [] }),
  ),
})
const three = fc.tuple(params, params, params)

describe('an action of the chart', () => {
  it("equals the result of XState's own actions", () => {
    fc.assert(
      fc.property(three, (input) => {
        const [ours, theirs] = [toAction(update), asXStateDoes].map((action) => {
          const machine = machineOf(action as typeof asXStateDoes, input)
          const before = machine.getInitialSnapshot({} as never)
          const [snapshot, actions] = transition(machine, before, { type: 'PAUSE' })
          const emitted = actions
            .filter(({ type }) => (type as string) === 'xstate.emit')
            .map(({ params }) => params)
          const { value, context, status, children, historyValue, tags } = snapshot
          return { value, context, status, children, historyValue, tags, emitted }
        })
        expect(ours).toEqual(theirs)
      }),
    )
  })

  it('emits in order, once the transition has been applied', () => {
    const machine = machineOf(toAction(update) as typeof asXStateDoes, [
      { emitted: ['a', 'b'], patch: { steps: 1 } },
      { emitted: ['c'], patch: null },
      { emitted: ['d'], patch: { steps: 2 } },
    ])
    const actor = createActor(machine)
    const emitted: unknown[] = []
    actor.on('*', (event) => emitted.push([event, actor.getSnapshot().value]))
    actor.start()
    actor.send({ type: 'PAUSE' })
    const warning = (code: string, message: string) => [{ type: 'warning', code, message }, 'after']
    expect(emitted).toEqual([
      warning('PAUSE.0', 'a'),
      warning('PAUSE.0', 'b'),
      warning('PAUSE.1', 'c'),
      warning('PAUSE.1', 'd'),
      warning('PAUSE.2', 'a'),
      warning('PAUSE.2', 'b'),
      warning('PAUSE.1', 'c'),
      warning('PAUSE.1', 'd'),
    ])
  })

  it('does not change the context if nothing changes', () => {
    const nothing: Params = { emitted: ['a'], patch: null }
    const machine = machineOf(toAction(update) as typeof asXStateDoes, [nothing, nothing, nothing])
    const before = machine.getInitialSnapshot({} as never)
    const [after] = transition(machine, before, { type: 'PAUSE' })
    expect(after.context).toBe(before.context)
  })
})
