import { createActor, setup } from 'xstate'
import type { CallAbort } from '../../../src/core/base/abort.js'
import { fromEffect } from '../../../src/core/effects/actors.js'

/** A machine that asks and stores the answer. STOP leaves the question. */
function asking(work: Parameters<typeof fromEffect<string, { question: string }>>[0]) {
  const machine = setup({ actors: { ask: fromEffect<string, { question: string }>(work) } }).createMachine({
    initial: 'asking',
    states: {
      asking: {
        invoke: { id: 'ask', src: 'ask', input: { question: 'why?' }, onDone: 'answered', onError: 'failed' },
        on: { STOP: 'stopped' },
      },
      answered: {},
      failed: {},
      stopped: {},
    },
  })
  return createActor(machine)
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('An effect receives its input, and reports its outcome', async () => {
  const questions: string[] = []
  const answered = asking(async ({ input }) => {
    questions.push(input.question)
    return 'so'
  }).start()
  const failed = asking(() => Promise.reject(new Error('no'))).start()
  await settle()
  expect([answered.getSnapshot().value, failed.getSnapshot().value, questions]).toEqual([
    'answered',
    'failed',
    ['why?'],
  ])
})

test('A stopped effect aborts, and ignores later results', async () => {
  const aborts: CallAbort[] = []
  let answer = (_text: string): void => undefined
  const actor = asking(({ abort }) => {
    aborts.push(abort)
    return new Promise((resolve) => {
      answer = resolve
    })
  }).start()
  const [abort] = aborts
  const received: unknown[] = []
  abort?.signal.addEventListener('abort', () => received.push(abort.signal.reason))
  expect(abort?.aborted).toBe(false)
  actor.send({ type: 'STOP' })
  expect(received).toEqual([expect.objectContaining({ name: 'AbortError' })])
  expect(() => abort?.throwIfAborted()).toThrow(abort?.signal.reason as Error)
  answer('late')
  await settle()
  expect(actor.getSnapshot().value).toBe('stopped')
})

test('A completed effect no longer aborts', async () => {
  let abort: CallAbort | undefined
  const actor = asking((input) => {
    ;({ abort } = input)
    return Promise.resolve('so')
  }).start()
  await settle()
  actor.send({ type: 'STOP' })
  actor.stop()
  expect(abort?.aborted).toBe(false)
})

test('Its state is plain JSON, and a restored effect does not start again by itself', async () => {
  let begun = 0
  const logic = fromEffect<string>(() => {
    begun += 1
    return Promise.resolve('so')
  })
  const actor = createActor(logic, { input: 1 }).start()
  await settle()
  const stored = actor.getPersistedSnapshot()
  expect(stored).toEqual({ status: 'done', output: 'so', error: undefined, input: undefined })
  createActor(logic, { snapshot: stored, input: 1 }).start()
  expect(begun).toBe(1)
})
