import { jest } from '@jest/globals'
import type { JsonObject } from '../../machines/agent/json.js'
import {
  type CallWatch,
  createOpenCalls,
  type KnownAnswer,
  type OpenCalls,
} from '../../src/mcp/client/asking-call.js'

beforeEach(() => jest.useFakeTimers())
afterEach(() => jest.useRealTimers())

const minute = 60_000

/** A call whose end the test controls. */
function begin(calls: OpenCalls, key = 'k', timeoutMs = minute, known: readonly KnownAnswer[] = []) {
  let [end, fail] = [(_result: JsonObject): void => undefined, (_error: Error): void => undefined]
  const pending = new Promise<JsonObject>((resolve, reject) => {
    ;[end, fail] = [resolve, reject]
  })
  const watches: CallWatch[] = []
  const call = calls.begin(key, {
    make: (watch) => {
      const { signal } = watch
      watches.push(watch)
      signal.addEventListener('abort', () => fail(signal.reason as Error))
      return pending
    },
    server: 'x',
    timeoutMs,
    known,
  })
  const next = (signal = new AbortController().signal) => call.next(signal, () => undefined)
  return { call, next, end, watch: () => watches[0], signal: () => watches[0]?.signal }
}

it('counts silence, but not the time that a person takes', async () => {
  const calls = createOpenCalls()
  const { call, next, signal } = begin(calls)
  const answered = calls.ask({ message: 'Seat?' })
  expect(await next()).toEqual({ asks: { message: 'Seat?' } })
  await jest.advanceTimersByTimeAsync(10 * minute)
  expect(signal()?.aborted).toBe(false)
  call.answer({ action: 'accept' })
  expect(await answered).toEqual({ action: 'accept' })
  const end = next()
  await jest.advanceTimersByTimeAsync(minute)
  expect(await end).toMatchObject({
    error: { kind: 'transient', message: expect.stringContaining('no progress') },
  })
  expect(calls.find('k')).toBeUndefined()
})

it('cancels a question that has waited for an hour', async () => {
  const calls = createOpenCalls()
  const { next } = begin(calls)
  const answered = calls.ask({})
  await next()
  await jest.advanceTimersByTimeAsync(60 * minute)
  expect(await answered).toEqual({ action: 'cancel' })
})

it('cancels all questions that a server asks at once', async () => {
  const calls = createOpenCalls()
  const { next } = begin(calls)
  const answered = Promise.all([calls.ask({ n: 1 }), calls.ask({ n: 2 })])
  await next()
  await jest.advanceTimersByTimeAsync(60 * minute)
  expect(await answered).toEqual([{ action: 'cancel' }, { action: 'cancel' }])
})

it('counts no silence of a task, regardless of its limit', async () => {
  const { watch, signal } = begin(createOpenCalls(), 'k', 60 * minute)
  watch()?.stopTimer()
  watch()?.onProgress({})
  await jest.advanceTimersByTimeAsync(120 * minute)
  expect(signal()?.aborted).toBe(false)
})

it('discards a call whose result was read', async () => {
  const { next, end } = begin(createOpenCalls())
  const call = next()
  end({ content: [] })
  expect(await call).toEqual({ result: { content: [] } })
  expect(jest.getTimerCount()).toBe(0)
})

it('discards the result of a call that is no longer requested', async () => {
  const calls = createOpenCalls()
  const { end } = begin(calls)
  end({})
  await jest.advanceTimersByTimeAsync(minute)
  expect(calls.find('k')?.isOver()).toBe(true)
  await jest.advanceTimersByTimeAsync(60 * minute)
  expect(calls.find('k')).toBeUndefined()
})

it('assigns a question to the call that started last and has no question', async () => {
  const calls = createOpenCalls()
  const [one, two] = [begin(calls, 'one'), begin(calls, 'two')]
  void calls.ask({ n: 1 })
  void calls.ask({ n: 2 })
  expect(await Promise.all([one.next(), two.next()])).toEqual([{ asks: { n: 2 } }, { asks: { n: 1 } }])
  expect(await createOpenCalls().ask({})).toEqual({ action: 'cancel' })
})

it('replays an earlier answer once, and asks a person if the server refuses it', async () => {
  const calls = createOpenCalls()
  const seat = { message: 'Seat?' }
  const { next } = begin(calls, 'k', minute, [[JSON.stringify(seat), { action: 'decline' }]])
  expect(await calls.ask(seat)).toEqual({ action: 'decline' })
  void calls.ask(seat)
  expect(await next()).toEqual({ asks: seat })
})

it('keeps only the calls in progress if a client abandons calls', async () => {
  const calls = createOpenCalls()
  const begun = Array.from({ length: 1_000 }, (_, i) => begin(calls, `call ${i}`))
  for (let i = 0; i < 1_000; i += 1) void calls.ask({ i })
  for (const { end } of begun) end({})
  await jest.advanceTimersByTimeAsync(60 * minute)
  expect(begun.filter((_, i) => calls.find(`call ${i}`))).toEqual([])
  expect(jest.getTimerCount()).toBe(0)
})

it('ends with the run that waits for it', async () => {
  const calls = createOpenCalls()
  const { next, signal } = begin(calls)
  const run = new AbortController()
  const end = next(run.signal)
  run.abort(new Error('cancelled'))
  expect(await end).toEqual({ error: new Error('cancelled') })
  expect(signal()?.aborted).toBe(true)
})
