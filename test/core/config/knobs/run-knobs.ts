import { memoryStore, presets, type SessionStore } from '../../../../src/index.js'
import { countRequests, type Knob, lookAtEnd, lookAtState, sawEvent } from './knob.js'
import { createTool, type Outcome, pass, type Scene, settle, type Turn } from './play-scene.js'

const asks: Turn = { calls: [['work', { n: 1 }]] }
const asksTwice: Turn = {
  calls: [
    ['work', { n: 1 }],
    ['work', { n: 2 }],
  ],
}
const work = () => [createTool('work', () => 'ok')]
/** One step costs 15 tokens (5 of them output) and 15 USD. The other step is free. */
const paid: Scene = { turns: [asks, { usage: { input: 0, output: 0 } }], tools: work }
const prices = { 'played-1': { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 } }
const priced: Scene = { ...paid, options: () => ({ prices }) }
/** An answer of 15 tokens is within the limit of 15. */
const spent: Scene = { turns: [{}], config: { limits: { tokenBudget: 15 } } }
const failing = (kind: 'transient' | 'rate_limit', times: number): Scene => ({
  turns: Array.from({ length: times }, () => ({ fails: { kind, retryAfterMs: null } })),
})
/** The stream pauses for 100 ms after the answer's first piece. */
const silent: Scene = {
  turns: [
    {
      meanwhile: async ({ onActivity, onDelta }, clock) => {
        onActivity()
        onDelta('So', '')
        await pass(clock, 100)
      },
    },
  ],
}
/** Only comments arrive for 100 ms. */
const waiting: Scene = {
  turns: [
    {
      meanwhile: async ({ onActivity }, clock) => {
        await pass(clock, 50)
        onActivity('keep_alive')
        await pass(clock, 50)
      },
    },
  ],
}
const slow: Scene = {
  turns: [asks],
  tools: (clock) => [createTool('work', () => pass(clock, 100).then(() => 'ok'))],
}
const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const
/** Two answers that violate the schema, then a valid one. */
const misfits: Scene = {
  turns: [{ text: '{}' }, { text: '{}' }, { text: '{"n":1}' }],
  options: () => ({ output: schema as never }),
}
const parallel: Scene = {
  turns: [{ calls: [['wait'], ['wait'], ['wait']] }],
  tools: () => {
    let running = 0
    const wait = async () => {
      running += 1
      const most = running
      await settle()
      running -= 1
      return `${most} at once`
    }
    return [createTool('wait', wait, { readOnly: true })]
  },
}
const tokenizer = { count: (text: string) => text.split(/\s+/).filter(Boolean).length }
/** The last request has 119 tokens. */
const long: Scene = {
  turns: [{ text: 'one two three' }, { text: 'four five six' }],
  inputs: ['a '.repeat(30), 'b '.repeat(30), 'c '.repeat(30)],
  options: () => ({ tokenizer }),
}
/** More turns than fit in the window. The strategy selects the omitted ones. */
const longer: Scene = { ...long, inputs: ['a', 'b', 'c', 'd', 'e'].map((word) => `${word} `.repeat(100)) }
const results = ({ messages }: Outcome): unknown =>
  messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])).join(' ')

/** A store that takes 100 ms for each write. */
const slowStore: Scene = {
  turns: [{}],
  options: (clock) => {
    const store = memoryStore()
    const append: SessionStore['append'] = async (...args) => {
      await pass(clock, 100)
      return store.append(...args)
    }
    return { store: { ...store, append } }
  },
}
/** The process dies during a call, and another one resumes. */
const interrupted = (): Scene => {
  let store = memoryStore()
  return {
    turns: [asks],
    tools: () => [createTool('work', () => new Promise(() => undefined))],
    options: () => ({ store }),
    act: async (make) => {
      const first = memoryStore()
      store = first
      const run = make().run('Go.', { session: 'ann' })
      await new Promise<void>((resolve) => {
        run.events$.subscribe(({ type }) => {
          if (type === 'tool_call') resolve()
        })
      })
      await settle()
      store = memoryStore()
      const lease = store.acquire('ann', { holder: 'another process', ttlMs: 60_000 })
      store.append(lease, first.read('ann'))
      store.release(lease)
      const resumed = await make().resume('ann')
      run.cancel()
      return resumed
    },
  }
}

export const runKnobs: readonly Knob[] = [
  {
    key: 'limits.maxSteps',
    scene: { turns: [asks, asks], tools: work },
    values: [2, 3, 4, null],
    look: lookAtState,
    sees: ['MAX_STEPS', 'COMPLETED', 'COMPLETED', 'COMPLETED'],
  },
  {
    key: 'limits.maxToolCalls',
    scene: { turns: [asksTwice], tools: work },
    values: [1, 2, 3, null],
    look: lookAtEnd,
    sees: ['MAX_STEPS max_tool_calls', 'COMPLETED end_turn', 'COMPLETED end_turn', 'COMPLETED end_turn'],
  },
  {
    key: 'limits.maxToolCallsPerResponse',
    scene: { turns: [asksTwice], tools: work },
    values: [1, 2, 3, null],
    look: ({ events }) =>
      events
        .filter((event) => event.type === 'tool_result')
        .map(({ status }) => status)
        .sort()
        .join(),
    sees: ['blocked,ok', 'ok,ok', 'ok,ok', 'ok,ok'],
  },
  {
    key: 'limits.timeoutMs',
    scene: { turns: [{ meanwhile: (_, clock) => pass(clock, 100) }] },
    values: [99, 100, 101, 0],
    look: lookAtState,
    sees: ['TIMED_OUT', 'TIMED_OUT', 'COMPLETED', 'COMPLETED'],
  },
  {
    key: 'limits.tokenBudget',
    scene: paid,
    values: [14, 15, 16, 0],
    look: lookAtEnd,
    sees: [
      'BUDGET_EXCEEDED token_budget',
      'BUDGET_EXCEEDED token_budget',
      'COMPLETED end_turn',
      'COMPLETED end_turn',
    ],
  },
  {
    key: 'limits.outputTokens',
    scene: paid,
    values: [4, 5, 6, 0],
    look: lookAtEnd,
    sees: [
      'BUDGET_EXCEEDED output_tokens',
      'BUDGET_EXCEEDED output_tokens',
      'COMPLETED end_turn',
      'COMPLETED end_turn',
    ],
  },
  {
    key: 'limits.costLimit',
    scene: priced,
    values: [14, 15, 16, 0],
    look: lookAtEnd,
    sees: [
      'BUDGET_EXCEEDED cost_limit',
      'BUDGET_EXCEEDED cost_limit',
      'COMPLETED end_turn',
      'COMPLETED end_turn',
    ],
  },
  {
    key: 'limits.onLimit',
    scene: { turns: [asks], tools: work, config: { limits: { maxSteps: 1 } } },
    values: ['stop', 'conclude'],
    look: countRequests,
    sees: [1, 2],
  },
  {
    key: 'limits.onNearBudget',
    scene: {
      turns: [asks],
      tools: work,
      config: { limits: { tokenBudget: 1000 }, guardrails: { reserveTokens: 990 } },
    },
    values: ['warn', 'conclude'],
    look: lookAtEnd,
    sees: ['COMPLETED end_turn', 'BUDGET_EXCEEDED token_budget'],
  },
  {
    key: 'budget.scope',
    scene: { turns: [{}, {}], inputs: ['Go.', 'Again.'], config: { limits: { tokenBudget: 20 } } },
    values: ['session', 'run'],
    look: lookAtState,
    sees: ['BUDGET_EXCEEDED', 'COMPLETED'],
  },
  {
    key: 'budget.countCached',
    scene: spent,
    values: [true, false],
    look: lookAtState,
    sees: ['BUDGET_EXCEEDED', 'COMPLETED'],
  },
  {
    key: 'budget.onOvershoot',
    scene: spent,
    values: ['exceeded', 'complete'],
    look: lookAtState,
    sees: ['BUDGET_EXCEEDED', 'COMPLETED'],
  },
  {
    key: 'budget.finishBatch',
    scene: { ...paid, config: { limits: { tokenBudget: 15 } } },
    values: [false, true],
    look: results,
    sees: [expect.stringContaining('Not executed'), 'ok'],
  },
  {
    key: 'budget.preflight',
    scene: { turns: [{}], inputs: ['word '.repeat(100)], config: { limits: { tokenBudget: 60 } } },
    values: [false, true],
    look: lookAtState,
    sees: ['COMPLETED', 'BUDGET_EXCEEDED'],
  },
  {
    key: 'budget.onUnknownPrice',
    scene: { turns: [{}], config: { limits: { costLimit: 1 } } },
    values: ['error', 'warn'],
    look: lookAtEnd,
    sees: ['REFUSED unknown_price', 'COMPLETED end_turn'],
  },
  {
    key: 'budget.onMissingUsage',
    scene: { turns: [{ usage: null }], config: { limits: { tokenBudget: 1 } } },
    values: ['estimate', 'zero'],
    look: lookAtState,
    sees: ['BUDGET_EXCEEDED', 'COMPLETED'],
  },
  {
    key: 'retry.maxAttempts',
    scene: failing('transient', 2),
    values: [2, 3, 4],
    look: lookAtState,
    sees: ['ERROR', 'COMPLETED', 'COMPLETED'],
  },
  {
    key: 'retry.rateLimitAttempts',
    scene: failing('rate_limit', 2),
    values: [2, 3, 4],
    look: lookAtState,
    sees: ['ERROR', 'COMPLETED', 'COMPLETED'],
  },
  {
    key: 'retry.baseDelayMs',
    scene: failing('transient', 1),
    values: [99, 100, 101],
    look: ({ took }) => took,
    sees: [99, 100, 101],
  },
  {
    key: 'retry.maxDelayMs',
    scene: { ...failing('transient', 2), config: { retry: { baseDelayMs: 100 } } },
    values: [199, 200, 201],
    look: ({ took }) => took,
    sees: [299, 300, 300],
  },
  {
    key: 'retry.maxRetryAfterMs',
    scene: { turns: [{ fails: { kind: 'rate_limit', retryAfterMs: 100 } }] },
    values: [99, 100, 101],
    look: lookAtState,
    sees: ['ERROR', 'COMPLETED', 'COMPLETED'],
  },
  {
    key: 'stream',
    scene: { turns: [{}] },
    values: [true, false],
    look: ({ requests }) => (requests[0] as { stream: boolean }).stream,
    sees: [true, false],
  },
  {
    key: 'streamIdleMs',
    scene: silent,
    values: [99, 100, 101, 0],
    look: countRequests,
    sees: [2, 2, 1, 1],
  },
  {
    key: 'storeTimeoutMs',
    scene: slowStore,
    values: [99, 100, 101, 0],
    look: lookAtEnd,
    sees: ['ERROR store_error', 'ERROR store_error', 'COMPLETED end_turn', 'COMPLETED end_turn'],
  },
  {
    key: 'contentIdleMs',
    scene: waiting,
    values: [99, 100, 101, 0],
    look: countRequests,
    sees: [2, 2, 1, 1],
  },
  {
    key: 'completion.onMissingEnd',
    scene: { turns: [{ isCut: true, text: 'So far.' }] },
    values: ['retry', 'accept'],
    look: countRequests,
    sees: [2, 1],
  },
  {
    key: 'completion.maxOutputRepairs',
    scene: misfits,
    values: [1, 2, 3, 0],
    look: lookAtEnd,
    sees: ['ERROR invalid_output', 'COMPLETED end_turn', 'COMPLETED end_turn', 'ERROR invalid_output'],
  },
  {
    key: 'context.window',
    scene: { ...long, config: { context: { strategy: 'none' } } },
    values: [118, 119, 120, 0],
    look: lookAtEnd,
    sees: ['ERROR context_overflow', 'COMPLETED end_turn', 'COMPLETED end_turn', 'COMPLETED end_turn'],
  },
  {
    key: 'context.strategy',
    scene: { ...longer, config: { context: { window: 300 } } },
    values: ['sliding_window', 'compact', 'summarize', 'none'],
    look: ({ state, requests }) =>
      `${state} ${requests.map((request) => (request as { messages: unknown[] }).messages.length).join()}`,
    sees: ['COMPLETED 1,3,3,3,3', 'COMPLETED 1,3,1,1,1', 'COMPLETED 1,3,1,1,1,1,1,1', 'ERROR 1,3'],
  },
  {
    key: 'toolCalls.concurrency',
    scene: parallel,
    values: [2, 3, 4],
    look: ({ messages }) =>
      Math.max(
        ...messages.map(({ content }) => Number(/^"(\d) at once/.exec(JSON.stringify(content))?.[1] ?? 0)),
      ),
    sees: [2, 3, 3],
  },
  {
    key: 'toolCalls.timeoutMs',
    scene: slow,
    values: [99, 100, 101, 0],
    look: (outcome) => results(outcome) === 'ok',
    sees: [false, false, true, true],
  },
  {
    key: 'toolCalls.maxResultChars',
    scene: { turns: [asks], tools: () => [createTool('work', () => 'x'.repeat(200))] },
    values: [199, 200, 201],
    look: (outcome) => results(outcome) === 'x'.repeat(200),
    sees: [false, true, true],
  },
  {
    key: 'toolCalls.onInterrupted',
    scene: interrupted(),
    values: ['result', 'approval'],
    look: lookAtState,
    sees: ['COMPLETED', 'WAITING_FOR_INPUT'],
  },
  {
    key: 'interactive',
    scene: { turns: [{}] },
    values: [false, true],
    look: lookAtState,
    sees: ['COMPLETED', 'WAITING_FOR_INPUT'],
  },
  {
    key: 'preset',
    scene: {
      turns: Array.from({ length: 10 }, (_, n) => ({ calls: [['work', { n }]] }) as Turn),
      tools: () => [createTool('work', ({ n }) => `Result ${String(n)}`)],
    },
    values: Object.keys(presets),
    look: lookAtState,
    sees: ['COMPLETED', 'MAX_STEPS', 'COMPLETED', 'MAX_STEPS', 'COMPLETED'],
  },
  {
    key: 'guardrails.maxTokensRecoveries',
    scene: {
      turns: [
        { text: 'So', finish: 'length' },
        { text: ' far', finish: 'length' },
      ],
    },
    values: [1, 2, 3, 0],
    look: lookAtEnd,
    sees: ['COMPLETED max_tokens', 'COMPLETED end_turn', 'COMPLETED end_turn', 'COMPLETED max_tokens'],
  },
  {
    key: 'guardrails.reserveTokens',
    scene: { ...paid, config: { limits: { tokenBudget: 100 } } },
    values: [84, 85, 86, 0],
    look: sawEvent('budget_warning'),
    sees: [false, true, true, false],
  },
  {
    key: 'guardrails.reserveCostFraction',
    scene: { ...priced, config: { limits: { costLimit: 100 } } },
    values: [0.84, 0.85, 0.86, 0],
    look: sawEvent('budget_warning'),
    sees: [false, true, true, false],
  },
  {
    key: 'guardrails.emptyAnswer',
    scene: { turns: [{ text: '' }] },
    values: [{}, null],
    look: countRequests,
    sees: [2, 1],
  },
  {
    key: 'guardrails.emptyAnswer.reprompts',
    scene: {
      turns: [asks, { text: '' }, { text: '' }],
      tools: () => [
        createTool('work', () => {
          throw new Error('It broke.')
        }),
      ],
    },
    values: [1, 2, 3],
    look: lookAtEnd,
    sees: ['ERROR empty_response', 'COMPLETED end_turn', 'COMPLETED end_turn'],
  },
  {
    key: 'guardrails.emptyAnswer.retries',
    scene: { turns: [{ text: '' }, { text: '' }] },
    values: [1, 2, 3],
    look: lookAtEnd,
    sees: ['ERROR empty_response', 'COMPLETED end_turn', 'COMPLETED end_turn'],
  },
]
