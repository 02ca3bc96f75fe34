import {
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  createMachine,
} from 'xstate'
import { createTableTransition } from '../../../src/core/interpreter/table-transition.js'
import { sampled } from '../../support/extent.js'
import { createRandom, EventPool, inputs } from './random-walk.js'
import { createIdleAgent, findDifference } from './side-by-side.js'

const runs = process.env.STATEWRIGHT_INTERPRETER === 'all' ? 1_500 : sampled(80)
const names = Object.keys(inputs)

/**
 * One machine for both, so that states and snapshots can be compared. The test swaps its `transition` between
 * runs.
 */
const machine = createIdleAgent()
// oxlint-disable-next-line unbound-method -- XState binds it
const byXState = machine.transition
const byTables = createTableTransition(machine) as unknown as AnyStateMachine['transition']

/** Runs the agent inside another machine. Returns all output of inspectors and subscribers. */
function play(
  transition: AnyStateMachine['transition'],
  input: unknown,
  nextEvent: (snapshot: AnyMachineSnapshot) => AnyEventObject | undefined,
): unknown[] {
  machine.transition = transition
  const received: unknown[] = []
  const parent = createMachine({
    initial: 'working',
    states: {
      working: {
        invoke: {
          id: 'agent',
          src: machine,
          input,
          onDone: 'done',
          onError: 'failed',
          onSnapshot: { actions: ({ event }) => received.push('snapshot for the parent', event.snapshot) },
        },
        on: { LEAVE: 'left' },
      },
      done: { type: 'final' },
      failed: {},
      left: {},
    },
  })
  const actor = createActor(parent, {
    id: 'app',
    inspect: (inspected) => {
      if ((inspected.actorRef as AnyActorRef).id === 'app') return
      const { type, actorRef } = inspected
      received.push(type, actorRef)
      if ('event' in inspected) received.push(inspected.event)
      if ('snapshot' in inspected) received.push(inspected.snapshot)
      if ('action' in inspected) received.push((inspected as { action: unknown }).action)
      if (inspected.type === '@xstate.microstep') {
        const { _transitions: transitions } = inspected
        received.push(transitions)
      }
    },
  })
  actor.start()
  const agent = actor.getSnapshot().children['agent'] as AnyActorRef
  agent.on('*', (emitted: unknown) => received.push('emitted', emitted))
  for (;;) {
    const event = nextEvent(agent.getSnapshot() as AnyMachineSnapshot)
    if (event === undefined) break
    if (event.type === 'LEAVE') actor.send(event)
    else agent.send(event)
  }
  received.push(agent.getPersistedSnapshot(), actor.getSnapshot().value)
  actor.stop()
  return received
}

test(`${runs} random runs inside another machine emit the same events`, () => {
  const random = createRandom(7)
  const pool = new EventPool(random)
  for (let run = 0; run < runs; run++) {
    const input = inputs[names[run % names.length] as string]
    const sent: AnyEventObject[] = []
    const expected = play(byXState, input, (snapshot) => {
      if (snapshot.status !== 'active' || sent.length > 40) return undefined
      const event = random() < 0.01 ? { type: 'LEAVE' } : pool.draw(snapshot)
      sent.push(event)
      return event
    })
    const left = sent.values()
    const actual = play(byTables, input, () => left.next().value)
    expect([sent.map(({ type }) => type), findDifference(expected, actual, 'told')]).toEqual([
      sent.map(({ type }) => type),
      null,
    ])
  }
})

test('the comparison detects an interpreter that omits events', () => {
  const input = inputs[names[0] as string]
  const events = [{ type: 'PAUSE' }, { type: 'CANCEL' }]
  const both = [events.values(), events.slice(1).values()].map((sent) =>
    play(byTables, input, () => sent.next().value),
  )
  expect(findDifference(both[0], both[1], 'told')).toMatch(/^told/)
})
