import {
  type AnyActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyStateMachine,
  createActor,
  fromCallback,
  setup,
} from 'xstate'
import { toLightLogic } from '../../../src/core/interpreter/light-actor.js'
import { createTableTransition } from '../../../src/core/interpreter/table-transition.js'
import { fromEffect } from '../../../src/core/effects/actors.js'
import { findDifference } from './side-by-side.js'

/** An app's view of a child and its actions on it. */
interface Stage {
  reports: unknown[]
  /** How the effect ends, and which events its callback may send. */
  settle: { resolve: (value: unknown) => void; reject: (error: unknown) => void }
  sendBack: (event: AnyEventObject) => void
  child: AnyActorRef
  parent: AnyActorRef
}

/** A parent that starts a child in a transition, with tables or with XState. */
function open(kind: 'effect' | 'callback' | 'throwing', isLight: boolean): Stage {
  const stage = { reports: [] as unknown[] } as Stage
  const logics: Record<typeof kind, AnyActorLogic> = {
    effect: fromEffect(({ input, abort }) => {
      stage.reports.push(['works', input])
      abort.signal.addEventListener('abort', () => stage.reports.push('aborted'))
      return new Promise((resolve, reject) => {
        stage.settle = { resolve, reject }
      })
    }),
    callback: toLightLogic(
      fromCallback(({ sendBack, receive, input }) => {
        stage.reports.push(['works', input])
        stage.sendBack = sendBack
        receive((event) => stage.reports.push(['received', event]))
        sendBack({ type: 'BEGUN' })
        return () => stage.reports.push('disposed')
      }),
    ),
    throwing: toLightLogic(
      fromCallback(() => {
        throw new Error('It does not start.')
      }),
    ),
  }
  const machine = setup({ actors: { work: logics[kind] } }).createMachine({
    id: 'parent',
    initial: 'idle',
    states: {
      idle: { on: { GO: 'working' } },
      working: {
        invoke: { id: 'child', src: 'work', input: { n: 1 }, onDone: 'done', onError: 'failed' },
        on: { BEGUN: {}, LATER: {}, LEAVE: 'idle', AGAIN: { target: 'working', reenter: true } },
      },
      done: { on: { GO: 'working' } },
      failed: {},
    },
  }) as unknown as AnyStateMachine
  if (isLight) machine.transition = createTableTransition(machine) as unknown as typeof machine.transition
  const parent = createActor(machine, {
    inspect: (inspected) => {
      const { id } = inspected.actorRef as AnyActorRef
      const { type } = inspected
      const { event, snapshot } = inspected as { event?: unknown; snapshot?: { status: string } }
      stage.reports.push([type, id === 'child' ? id : 'parent', event, snapshot?.status])
    },
  }).start()
  parent.send({ type: 'GO' })
  stage.parent = parent
  stage.child = parent.getSnapshot().children['child'] as AnyActorRef
  stage.child?.subscribe({
    next: (snapshot: unknown) => stage.reports.push(['next', snapshot]),
    error: (error: unknown) => stage.reports.push(['error', String(error)]),
    complete: () => stage.reports.push('complete'),
  })
  return stage
}

const settled = () => new Promise((resolve) => setTimeout(resolve))

const deeds: Record<string, [kind: 'effect' | 'callback' | 'throwing', act: (stage: Stage) => void]> = {
  'ends with an output': ['effect', ({ settle }) => settle.resolve('output')],
  fails: ['effect', ({ settle }) => settle.reject(new Error('It failed.'))],
  'is stopped': ['effect', ({ parent }) => parent.send({ type: 'LEAVE' })],
  'is stopped, and ends too late': [
    'effect',
    ({ parent, settle }) => {
      parent.send({ type: 'LEAVE' })
      settle.resolve('late')
    },
  ],
  'is restarted': ['effect', ({ parent }) => parent.send({ type: 'AGAIN' })],
  'is stopped with its parent': ['effect', ({ parent }) => parent.stop()],
  'ignores an event': ['effect', ({ child }) => child.send({ type: 'HELLO' })],
  'sends events': [
    'callback',
    ({ sendBack }) => {
      sendBack({ type: 'LATER' })
      sendBack({ type: 'LEAVE' })
      sendBack({ type: 'LATER' })
    },
  ],
  'receives events': ['callback', ({ child }) => child.send({ type: 'HELLO' })],
  'is stopped, and disposes': ['callback', ({ parent }) => parent.send({ type: 'LEAVE' })],
  'throws when it starts': ['throwing', () => undefined],
}

test.each(Object.entries(deeds))(
  "a child that %s looks to an app like XState's own",
  async (_, [kind, act]) => {
    const [expected, actual] = await Promise.all(
      [false, true].map(async (isLight) => {
        const stage = open(kind, isLight)
        act(stage)
        await settled()
        const { reports, child, parent } = stage
        // Late, after the end.
        child?.subscribe({
          complete: () => reports.push('complete at once'),
          error: () => reports.push('error at once'),
        })
        child?.send({ type: 'LATE' })
        reports.push(JSON.parse(JSON.stringify([child, child?.getPersistedSnapshot()]) ?? 'null'))
        reports.push(Object.keys(parent.getSnapshot().children as object), parent.getSnapshot().value)
        const stop = (): unknown => child?.stop?.()
        expect(child === undefined || stop).toBeTruthy()
        if (child) expect(stop).toThrow('A non-root actor cannot be stopped directly.')
        return reports.map((each) => JSON.parse(JSON.stringify(each) ?? 'null') as unknown)
      }),
    )
    expect(findDifference(expected, actual, 'told')).toBeNull()
    expect(actual).toEqual(expected)
    expect(actual?.length).toBeGreaterThan(5)
  },
)

test('an error that a subscriber of a light child throws does not reach the others', () => {
  const stage = open('effect', true)
  const thrown: unknown[] = []
  const { setTimeout: original } = globalThis
  globalThis.setTimeout = ((work: () => void) => thrown.push(work)) as never
  stage.child.subscribe(() => {
    throw new Error('It is broken.')
  })
  const seen: unknown[] = []
  stage.child.subscribe((snapshot: { status: string }) => seen.push(snapshot.status)).unsubscribe()
  stage.child.subscribe((snapshot: { status: string }) => seen.push(snapshot.status))
  stage.child.send({ type: 'HELLO' })
  globalThis.setTimeout = original
  expect([seen, thrown.length]).toEqual([['active'], 1])
  stage.parent.stop()
})
