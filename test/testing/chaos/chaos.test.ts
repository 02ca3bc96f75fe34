import fc from 'fast-check'
import { z } from 'zod'
import {
  createAgent,
  defineTool,
  memoryStore,
  type ModelProvider,
  type ModelResponse,
} from '../../../src/index.js'
import {
  ChaosError,
  chaosModel,
  chaosStore,
  chaosTool,
  type FaultPlan,
  type ModelFault,
  type StoreFault,
  type ToolFault,
} from '../../../src/testing/index.js'
import { call, plainAnswer } from '../../support/manual-model.js'
import { sampled } from '../../support/extent.js'

const answers = (...list: Partial<ModelResponse>[]): ModelProvider => {
  let at = 0
  return {
    provider: 'scripted',
    model: 'scripted-1',
    request: async (_request, { onDelta }) => {
      const answer = { ...plainAnswer, text: 'The whole answer.', ...list[at++] }
      onDelta(answer.text, '')
      return answer
    },
  }
}

const retry = { maxAttempts: 2, rateLimitAttempts: 2, baseDelayMs: 1, maxRetryAfterMs: 0 }

/** The received text of a failing model request, and its rejection. */
async function ask(fault: ModelFault, signal = new AbortController().signal) {
  const model = chaosModel(answers({ toolCalls: [call('a', 'read', { path: 'x' })] }), [{ at: 1, fault }])
  let reported = ''
  const end = await model
    .request({} as never, { signal, onDelta: (text) => void (reported += text), onActivity: () => undefined })
    .then(
      ({ finishReason, complete, toolCalls, text }) => ({ finishReason, complete, calls: toolCalls, text }),
      (error: { failure?: { status: number; code: string } }) => error.failure?.status ?? error.failure?.code,
    )
  return { text: reported, end, landed: model.landed }
}

describe('a fault of a model', () => {
  test.each<[ModelFault, string, unknown]>([
    ['overloaded', '', 503],
    ['rate_limited', '', 429],
    ['refused', '', 400],
    ['cut', 'The whole', 'connection'],
    ['unfinished', 'The whole answer.', expect.objectContaining({ complete: false, finishReason: null })],
    ['truncated', 'The whole', expect.objectContaining({ finishReason: 'length', text: 'The whole' })],
    ['empty', '', expect.objectContaining({ text: '', calls: [], complete: true })],
  ])('%s reaches the run', async (fault, text, end) => {
    expect(await ask(fault)).toEqual({ text: text, end, landed: [{ at: 1, fault }] })
  })

  test('truncated removes the end of the arguments of the last call', async () => {
    const { end } = await ask('truncated')
    expect(end).toMatchObject({ calls: [{ function: { arguments: '{"path":"x"' } }] })
  })

  test('stalled lasts until the run abandons the answer', async () => {
    const controller = new AbortController()
    const pending = ask('stalled', controller.signal)
    await new Promise((resolve) => setImmediate(resolve))
    controller.abort(new Error('given up'))
    expect(await pending).toEqual({
      text: 'The whole',
      end: undefined,
      landed: [{ at: 1, fault: 'stalled' }],
    })
  })

  test('is recorded once the run has received it', async () => {
    const model = chaosModel(answers(), [{ at: 1, fault: 'cut' }])
    expect(() => model.certify()).toThrow("the fault 'cut' at request 1 did not land; there were 0 requests")
    const { state, output } = await createAgent({ model, retry }).run('Go.').result
    expect([state, output]).toEqual(['COMPLETED', 'The whole answer.'])
    expect(() => model.certify()).not.toThrow()
  })

  test('after the last request was not injected', async () => {
    const model = chaosModel(answers(), [
      { at: 1, fault: 'cut' },
      { at: 9, fault: 'refused' },
    ])
    await createAgent({ model, retry }).run('Go.').result
    expect(() => model.certify()).toThrow(ChaosError)
    expect(() => model.certify()).toThrow(
      "the fault 'refused' at request 9 did not land; there were 2 requests",
    )
  })
})

describe('a fault of a tool', () => {
  const effects: string[] = []
  const send = defineTool({
    name: 'send',
    description: 'Sends.',
    input: z.object({}),
    timeoutMs: 20,
    execute: () => {
      effects.push('sent')
      return 'Sent.'
    },
  })
  beforeEach(() => void effects.splice(0))

  test.each<[ToolFault, number, string]>([
    ['throws', 0, 'The tool failed.'],
    ['lost_reply', 1, 'The reply was lost.'],
    ['hangs', 0, 'did not finish within 20 ms'],
    ['deaf', 0, 'did not finish within 20 ms'],
    ['undefined', 1, 'returned nothing'],
    ['circular', 1, '[circular]'],
  ])('%s has %i effects, and the model reads about it', async (fault, count, read) => {
    const tool = chaosTool(send, [{ at: 1, fault }])
    const asks = { toolCalls: [call('a', 'send')], finishReason: 'tool_calls' }
    const { state, messages } = await createAgent({ model: answers(asks), tools: [tool] }).run('Go.').result
    tool.certify()
    expect([state, effects.length]).toEqual(['COMPLETED', count])
    expect(JSON.stringify(messages)).toContain(read)
  })

  test('cannot occur if the client executes the call', () => {
    const shown = defineTool({ name: 'show', description: 'Shows.', input: z.object({}), client: true })
    expect(() => chaosTool(shown, [{ at: 1, fault: 'throws' }])).toThrow("'show' is executed by its client")
  })
})

describe('a fault of a store', () => {
  const send = defineTool({
    name: 'send',
    description: 'Sends.',
    input: z.object({}),
    execute: () => 'Sent.',
  })
  const asks = { toolCalls: [call('a', 'send')], finishReason: 'tool_calls' }
  // A store that is down is retried, and tests do not wait that long.
  const clock = { now: () => 0, setTimeout: () => 0, clearTimeout: () => undefined }
  const run = async (fault: StoreFault) => {
    const inner = memoryStore()
    const store = chaosStore(inner, [{ at: 2, fault }])
    const started = createAgent({ model: answers(asks), tools: [send], store, clock }).run('Go.', {
      session: 'ann',
    })
    started.result.catch(() => undefined)
    return { inner, store, started }
  }

  test.each<[StoreFault, string]>([
    ['refused', 'The store is away.'],
    ['lost_reply', "The store's reply was lost."],
    ['disk_full', 'The disk is full.'],
    ['lease_lost', "Another process has taken over 'ann'."],
  ])('%s ends the run with the reason', async (fault, message) => {
    const { store, started } = await run(fault)
    const { state, reason, error } = await started.result
    store.certify()
    expect([state, reason]).toEqual(['ERROR', 'store_error'])
    expect(error?.message).toContain(message)
  })

  test.each<[StoreFault, number]>([
    ['dies', 1],
    ['dies_after', 2],
  ])('%s keeps earlier writes, and fails all later requests', async (fault, written) => {
    const { inner, store, started } = await run(fault)
    let isOver = false
    void started.result.finally(() => (isOver = true))
    while (store.landed.length === 0) await new Promise((resolve) => setImmediate(resolve))
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    store.certify()
    const writes = new Set(inner.read('ann').map(({ at }) => at))
    expect(isOver).toBe(false)
    expect(inner.read('ann').length).toBeGreaterThanOrEqual(written)
    expect(writes.size).toBeGreaterThan(0)
    const other = await Promise.race([
      store.get('ann'),
      new Promise((resolve) => setImmediate(resolve, 'silent')),
    ])
    expect(other).toBe('silent')
  })
})

describe('random faults', () => {
  const play = async (seed: number, rate: number) => {
    const model = chaosModel(answers(), { seed, rate })
    for (let i = 0; i < 20; i++)
      await model
        .request({} as never, {
          signal: new AbortController().signal,
          onDelta: () => undefined,
          onActivity: () => undefined,
        })
        .catch(() => undefined)
    return model
  }

  test('are the same for the same seed, and all or none at the extremes of the rate', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), async (seed, rate) => {
        const [one, other] = [await play(seed, rate), await play(seed, rate)]
        expect(other.landed).toEqual(one.landed)
        expect((await play(seed, 1)).landed).toHaveLength(20)
        expect((await play(seed, 0)).landed).toEqual([])
      }),
      { numRuns: sampled(30) },
    )
  })

  test('are recorded from the first that was injected', async () => {
    expect((await play(1, 1)).certify()).toBeUndefined()
    const none = await play(1, 0)
    expect(() => none.certify()).toThrow('no fault landed in 20 requests (seed 1, rate 0). Raise the rate')
  })
})

test.each<[string, unknown, string]>([
  ['not a plan', undefined, 'faults must be a list of { at, fault }, or { seed, rate }'],
  ['an empty list', [], 'the list of faults is empty'],
  ['an unknown fault', [{ at: 1, fault: 'slow' }], "unknown fault 'slow'. Available: overloaded"],
  [
    'a position before the first',
    [{ at: 0, fault: 'cut' }],
    'at must be a request number, a positive integer (got 0)',
  ],
  ['a rate above 1', { seed: 1, rate: 2 }, 'rate must be a number from 0 to 1 (got 2)'],
  ['a seed that is not a number', { seed: 'x', rate: 0 }, 'seed must be an integer (got x)'],
  ['no faults', { seed: 1, rate: 0, faults: [] }, 'faults must be a list of at least one fault'],
])('a plan that is %s is refused', (_, plan, why) => {
  expect(() => chaosModel(answers(), plan as FaultPlan<ModelFault>)).toThrow(why)
})
