import { jest } from '@jest/globals'
import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { CallAbort } from '../../../src/core/base/abort.js'
import { defineTool, type ToolExecution } from '../../../src/core/tools/define-tool.js'
import { call, settle, start } from './harness.js'
import { sampled } from '../../support/extent.js'

const common = { name: 'act', description: 'Acts.', input: { type: 'object' } as const }

/** A tool whose completion the test controls. */
function manual(options: { timeoutMs?: number; readOnly?: boolean } = {}) {
  const started: string[] = []
  const executions = new Map<string, ToolExecution>()
  const settlers = new Map<string, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>()
  const tool = defineTool({
    ...common,
    ...options,
    execute: (_, execution) => {
      started.push(execution.callId)
      executions.set(execution.callId, execution)
      return new Promise((resolve, reject) => settlers.set(execution.callId, { resolve, reject }))
    },
  })
  return {
    tool,
    started,
    execution: (id: string) => executions.get(id) as ToolExecution,
    resolve: (id: string, value: unknown) => settlers.get(id)?.resolve(value),
    reject: (id: string, error: unknown) => settlers.get(id)?.reject(error),
  }
}

const calls = (...ids: string[]) => ids.map((id) => call('act', {}, id))

test('Calls run in parallel up to the concurrency, start in order and report as they end', async () => {
  const { tool, started, resolve } = manual()
  const { done, results } = start(calls('a', 'b', 'c'), [tool], { concurrency: 2 })
  await settle()
  expect(started).toEqual(['a', 'b'])
  resolve('b', 1)
  await settle()
  expect(started).toEqual(['a', 'b', 'c'])
  resolve('c', 2)
  resolve('a', 3)
  await done
  expect(results.map(([id, { content }]) => [id, content])).toEqual([
    ['b', '1'],
    ['c', '2'],
    ['a', '3'],
  ])
})

test('A call that ends while another starts does not raise the concurrency', async () => {
  const { tool } = manual({ timeoutMs: 100 })
  const clock = new SimulatedClock()
  const running = new Set<string>()
  let most = 0
  const { done } = start(calls('a', 'b', 'c', 'd', 'e'), [tool], {
    concurrency: 2,
    clock,
    onStart: (id) => {
      running.add(id)
      most = Math.max(most, running.size)
      if (id === 'b') clock.increment(100)
    },
    onResult: (id) => running.delete(id),
  })
  while (running.size > 0) clock.increment(100)
  await done
  expect(most).toBe(2)
})

test.each([0, -1, NaN, Infinity])('A concurrency of %d still runs every call', async (concurrency) => {
  const tool = defineTool({ ...common, execute: () => 1 })
  const { done, results } = start(calls('a', 'b', 'c'), [tool], { concurrency })
  await done
  expect(results).toHaveLength(3)
})

test('An empty batch ends', async () => {
  const { done, results } = start([], [])
  await done
  expect(results).toEqual([])
})

test('A tool that throws does not affect the others', async () => {
  const tool = defineTool({
    ...common,
    execute: (_, { callId }) => {
      if (callId === 'b') throw new Error('boom')
      return callId
    },
  })
  const { done, results } = start(calls('a', 'b', 'c'), [tool])
  await done
  expect(Object.fromEntries(results.map(([id, { status }]) => [id, status]))).toEqual({
    a: 'ok',
    b: 'error',
    c: 'ok',
  })
})

test('At its timeout a call ends immediately, its signal aborts, and later results are dropped', async () => {
  const unhandled = jest.fn()
  process.on('unhandledRejection', unhandled)
  const { tool, execution, reject, resolve } = manual({ timeoutMs: 5000 })
  const { done, results, progress, clock } = start(calls('a', 'b'), [tool])
  await settle()
  const { signal } = execution('a')
  clock.increment(4999)
  await settle()
  expect(results).toEqual([])
  clock.increment(1)
  await done
  expect(results).toEqual([
    ['a', expect.objectContaining({ status: 'timeout', errorKind: 'transient', durationMs: 5000 })],
    ['b', expect.objectContaining({ status: 'timeout' })],
  ])
  expect(results[0]?.[1].content).toContain("'act' did not finish within 5000 ms")
  expect(results[0]?.[1].content).toContain('may still have taken effect')
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' })
  // The other call requests its signal only now.
  expect(execution('b').signal.reason).toMatchObject({ name: 'TimeoutError' })
  execution('a').progress(1)
  reject('a', new Error('late'))
  resolve('b', 'late')
  await settle()
  expect(results).toHaveLength(2)
  expect(progress).toEqual([])
  expect(unhandled).not.toHaveBeenCalled()
  process.off('unhandledRejection', unhandled)
})

test('A tool that respects its signal still ends as a timeout', async () => {
  const tool = defineTool({
    ...common,
    readOnly: true,
    execute: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error)
        })
      }),
  })
  const { done, results, clock } = start(calls('a'), [tool], { defaultTimeoutMs: 100 })
  await settle()
  clock.increment(100)
  await done
  expect(results[0]?.[1]).toMatchObject({ status: 'timeout' })
  expect(results[0]?.[1].content).not.toContain('taken effect')
})

test('A tool’s own timeout takes precedence over the default, and 0 disables it', async () => {
  const own = manual({ timeoutMs: 0 })
  const { done, results, clock } = start(calls('a'), [own.tool], { defaultTimeoutMs: 100 })
  await settle()
  clock.increment(1000)
  await settle()
  expect(results).toEqual([])
  own.resolve('a', 'late but welcome')
  await done
  expect(results[0]?.[1]).toMatchObject({ status: 'ok', durationMs: 1000 })
})

test('A call that ends in time or is aborted leaves no timer', async () => {
  const timers = new Set<unknown>()
  const simulated = new SimulatedClock()
  const clock = {
    now: () => simulated.now(),
    setTimeout: (fn: () => void, ms: number) => {
      const id = simulated.setTimeout(fn, ms)
      timers.add(id)
      return id
    },
    clearTimeout: (id: unknown) => {
      timers.delete(id)
      simulated.clearTimeout(id as number)
    },
  }
  const { tool, resolve } = manual({ timeoutMs: 100 })
  const { done, abort } = start(calls('a', 'b'), [tool], { clock })
  await settle()
  expect(timers.size).toBe(2)
  resolve('a', 1)
  await settle()
  expect(timers.size).toBe(1)
  abort()
  await done
  expect(timers.size).toBe(0)
})

test('Only a call with a timeout has a timer', async () => {
  const clock = { now: () => 0, setTimeout: jest.fn(), clearTimeout: jest.fn() }
  await start(calls('a'), [defineTool({ ...common, execute: () => 1 })], { clock }).done
  expect(clock.setTimeout).not.toHaveBeenCalled()
})

test('An abort reaches every running tool, starts nothing more and silences the batch', async () => {
  const { tool, started, execution, resolve, reject } = manual({ timeoutMs: 100 })
  const { done, results, progress, clock, abort } = start(calls('a', 'b', 'c'), [tool], { concurrency: 2 })
  await settle()
  const { signal } = execution('a')
  const reason = new Error('cancelled')
  abort(reason)
  expect(signal.reason).toBe(reason)
  expect(execution('b').signal.reason).toBe(reason)
  await done
  execution('a').progress('late')
  resolve('a', 1)
  reject('b', new Error('late'))
  clock.increment(1000)
  await settle()
  expect({ started, results, progress }).toEqual({ started: ['a', 'b'], results: [], progress: [] })
})

test('A batch that is aborted before it starts, or before its tools do, starts nothing', async () => {
  const { tool, started } = manual()
  const stopped = new CallAbort()
  stopped.abort()
  const aborted = start(calls('a'), [tool], { abort: stopped })
  const soon = start(calls('b'), [tool])
  soon.abort()
  await soon.done
  await settle()
  expect([started, aborted.results, soon.results]).toEqual([[], [], []])
})

test('An abort within onResult stops the rest', async () => {
  const seen: string[] = []
  const abort = new CallAbort()
  const tool = defineTool({ ...common, execute: () => 1 })
  start(calls('a', 'b', 'c'), [tool], {
    abort,
    onResult: (id) => {
      seen.push(id)
      abort.abort()
    },
  })
  await settle()
  expect(seen).toEqual(['a'])
})

test('Progress is reported as JSON while the call runs, and not after it', async () => {
  let late: (() => void) | undefined
  const tool = defineTool({
    ...common,
    execute: (_, { progress }) => {
      progress({ done: 1n })
      late = () => {
        progress('late')
      }
      return 'ok'
    },
  })
  const { done, progress } = start(calls('a'), [tool])
  await done
  late?.()
  expect(progress).toEqual([['a', 'act', { done: '1' }]])
})

test('Callbacks that throw stop neither the tools nor the batch', async () => {
  const onResult = jest.fn(() => {
    throw new Error('listener')
  })
  const tool = defineTool({
    ...common,
    execute: (_, { progress }) => {
      progress(1)
      return 'fine'
    },
  })
  await start(calls('a', 'b'), [tool], {
    concurrency: 1,
    onResult,
    onProgress: () => {
      throw new Error('listener')
    },
  }).done
  expect(onResult.mock.calls).toEqual([
    ['a', expect.objectContaining({ status: 'ok' })],
    ['b', expect.objectContaining({ status: 'ok' })],
  ])
})

test('A hundred concurrent calls with timeouts cause no leak warning of Node', async () => {
  const warned = jest.fn()
  process.on('warning', warned)
  const tool = defineTool({
    ...common,
    timeoutMs: 100,
    execute: (_, { signal }) => {
      signal.addEventListener('abort', () => undefined)
      return settle()
    },
  })
  const ids = Array.from({ length: 100 }, (_, index) => `c${index}`)
  await start(calls(...ids), [tool], { concurrency: 100 }).done
  await settle()
  process.off('warning', warned)
  expect(warned).not.toHaveBeenCalled()
})

test('Each call has exactly one result, in any order of ends', async () => {
  const plan = fc.record({
    outcomes: fc.array(fc.constantFrom('value', 'throw', 'hang', 'later'), { maxLength: 12 }),
    concurrency: fc.integer({ min: 1, max: 5 }),
  })
  await fc.assert(
    fc.asyncProperty(plan, fc.scheduler(), async ({ outcomes, concurrency }, scheduler) => {
      const tool = defineTool({
        ...common,
        timeoutMs: 10,
        execute: (_, { callId }) => {
          const outcome = outcomes[Number(callId)]
          if (outcome === 'throw') throw new Error('boom')
          if (outcome === 'later') return scheduler.schedule(Promise.resolve('later'))
          return outcome === 'hang' ? new Promise(() => undefined) : outcome
        },
      })
      const ids = outcomes.map((_, index) => String(index))
      const { done, results, clock } = start(calls(...ids), [tool], { concurrency })
      // At most one round per call, because each round ends at least one.
      for (const _ of ids) {
        await scheduler.waitIdle()
        await settle()
        clock.increment(10)
        await settle()
      }
      await done
      expect(results.map(([id]) => id).sort()).toEqual([...ids].sort())
      for (const [id, { status }] of results) {
        const expected = { value: 'ok', later: 'ok', throw: 'error', hang: 'timeout' }[
          outcomes[Number(id)] ?? 'value'
        ]
        expect(status).toBe(expected)
      }
    }),
    { numRuns: sampled(50) },
  )
})
