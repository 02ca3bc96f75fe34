import { createActor, fromPromise, SimulatedClock, type AnyEventObject } from 'xstate'
import {
  generatePaths,
  createDoneActorEvent,
  createErrorActorEvent,
  replay,
  type ReplayHarness,
} from '../../src/testing/index.js'
import { loop } from './machines.js'

const { paths } = generatePaths(loop, {
  inputs: { plain: { maxSteps: 1, shielded: false }, shielded: { maxSteps: 1, shielded: true } },
  alphabet: {
    'model calls': createDoneActorEvent('model', { calls: 1 }),
    'model answers': createDoneActorEvent('model', { calls: 0 }),
    'model fails': createErrorActorEvent('model', { code: 'down' }),
    'shield allows': createDoneActorEvent('shield'),
    'shield fails': createErrorActorEvent('shield', { code: 'down' }),
    result: { type: 'TOOL_RESULT', ok: true },
    done: { type: 'BATCH_DONE' },
    CANCEL: { type: 'CANCEL' },
    PAUSE: { type: 'PAUSE' },
    RESUME: { type: 'RESUME' },
  },
})

/** The live machine, with real promises that the harness settles and a clock that it advances. */
function liveHarness(machine = loop): ReplayHarness & { stopped: boolean } {
  const clock = new SimulatedClock()
  const pending = new Map<string, { resolve: (value: never) => void; reject: (reason: unknown) => void }>()
  const wait = <T>(id: string) => new Promise<T>((resolve, reject) => pending.set(id, { resolve, reject }))
  const provided = machine.provide({
    actors: {
      model: fromPromise(() => wait<{ calls: number }>('model')),
      shield: fromPromise(() => wait<void>('shield')),
    },
  })
  let actor: ReturnType<typeof createActor<typeof loop>>
  const harness = {
    stopped: false,
    start: (input: unknown) => {
      actor = createActor(provided, { input: input as { maxSteps: number; shielded: boolean }, clock })
      actor.start()
    },
    perform: (event: AnyEventObject) => {
      const [, done, failed] = /^xstate\.(?:done\.actor\.(.+)|error\.actor\.(.+))$/.exec(event.type) ?? []
      if (done !== undefined) pending.get(done)?.resolve(event.output as never)
      else if (failed !== undefined) pending.get(failed)?.reject(event.error)
      else if (event.type.startsWith('xstate.after.')) clock.increment(1000)
      else actor.send(event as never)
    },
    // Machine promises report within a few turns of the event loop.
    settled: () => new Promise<void>((resolve) => setImmediate(resolve)),
    snapshot: () => actor.getSnapshot(),
    stop: () => {
      harness.stopped = true
      actor.stop()
    },
  }
  return harness
}

test.each(paths.map((path) => [path.name, path] as const))(
  'the live machine takes the same path: %s',
  async (_, path) => {
    const harness = liveHarness()
    expect(await replay(path, harness)).toEqual({ ok: true, steps: path.steps.length })
    expect(harness.stopped).toBe(true)
  },
)

const [path] = paths
if (!path) throw new Error('No path.')

test('a machine that takes another path fails at the first state that differs', async () => {
  const other = loop.provide({ guards: { hasCalls: () => false } })
  const result = await replay(path, liveHarness(other))
  expect(result).toMatchObject({
    ok: false,
    step: 1,
    expected: { value: { running: 'executing' }, status: 'active' },
    actual: { value: 'completed', status: 'done' },
  })
  expect(!result.ok && result.message).toContain(
    'should lead to running.executing, but led to completed (done)',
  )
})

test('an error of the harness is a failure at that step, and the harness is stopped', async () => {
  const harness = liveHarness()
  harness.perform = () => {
    throw new Error('no such button')
  }
  expect(await replay(path, harness)).toMatchObject({
    ok: false,
    step: 1,
    message: expect.stringContaining('no such button'),
  })
  expect(harness.stopped).toBe(true)
})

test('a harness that never settles does not hang the replay', async () => {
  const clock = new SimulatedClock()
  const harness = liveHarness()
  harness.settled = () => new Promise(() => undefined)
  const result = replay(path, harness, { timeoutMs: 500, clock })
  await new Promise<void>((resolve) => setImmediate(resolve))
  clock.increment(500)
  expect(await result).toMatchObject({
    ok: false,
    step: 0,
    message: expect.stringContaining('settled() of the harness took longer than 500 ms'),
  })
})

test.each<[name: string, move: (advance: () => void) => unknown]>([
  ['in a call', (advance) => advance()],
  ['at the start of a call', (advance) => Promise.resolve(advance()).then(() => undefined)],
  ['in a microtask of a call', (advance) => void Promise.resolve().then(advance)],
])('a harness may move the clock past the time limit %s', async (_, move) => {
  const clock = new SimulatedClock()
  const harness = liveHarness()
  const perform = harness.perform
  harness.perform = (event, step) => {
    perform(event, step)
    return move(() => clock.increment(1000))
  }
  expect(await replay(path, harness, { timeoutMs: 500, clock })).toMatchObject({ ok: true })
})

test('a failing stop is reported, unless an earlier step failed', async () => {
  const harness = { ...liveHarness(), stop: () => Promise.reject(new Error('still busy')) }
  expect(await replay(path, harness)).toMatchObject({
    ok: false,
    message: expect.stringContaining('still busy'),
  })
})
