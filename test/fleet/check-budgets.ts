import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { type BudgetStore, createBudget } from '../../src/fleet/index.js'
import {
  type AgentEvent,
  createAgent,
  ModelError,
  type ModelProvider,
  withFallbacks,
} from '../../src/index.js'
import { plainAnswer } from '../support/manual-model.js'
import { sampled } from '../support/extent.js'

/** The provider's usage report for one answer. */
const usages = {
  plain: { inputTokens: 12, outputTokens: 8, totalTokens: 20, cachedInputTokens: 0, reasoningTokens: 0 },
  none: null,
  total: { totalTokens: 25 },
  negative: { inputTokens: -500, outputTokens: -500, totalTokens: -1000 },
  halfNegative: { inputTokens: 12, outputTokens: -8, totalTokens: 4 },
  impossible: { inputTokens: 1e308, outputTokens: 1e308, totalTokens: 1e308 },
  huge: { inputTokens: 9e7, outputTokens: 12, totalTokens: 9e7 + 12 },
  fraction: { inputTokens: 10.25, outputTokens: 0.5, totalTokens: 10.75 },
  text: { inputTokens: '12', outputTokens: '8', totalTokens: '20' },
  nothing: { inputTokens: NaN, outputTokens: Infinity, totalTokens: NaN },
}

type UsageName = keyof typeof usages
type Ending =
  | 'answers'
  | 'is stopped'
  | 'is stopped in a queue'
  | 'breaks off'
  | 'is unreadable'
  | 'is refused'
  | 'never connects'
  | 'reaches no model'
  | 'reaches no limiter'
  | 'is stopped after a limiter failed'
  | 'exceeds the last quota'

/** One provider request. */
const request = fc.record({
  usage: fc.constantFrom(...(Object.keys(usages) as UsageName[])),
  ending: fc.constantFrom<Ending>(
    ...([
      'answers',
      'answers',
      'answers',
      'is stopped',
      'is stopped in a queue',
      'breaks off',
      'is unreadable',
      'is refused',
      'never connects',
      'reaches no model',
      'reaches no limiter',
      'is stopped after a limiter failed',
      'exceeds the last quota',
    ] as const),
  ),
  cost: fc.constantFrom<unknown>(undefined, 0.001, 1e-12, NaN, 1e308, -5, '1'),
  streams: fc.boolean(),
})
type Request = typeof request extends fc.Arbitrary<infer Value> ? Value : never

/** A provider that plays a request. It calls `onStop` in the middle of a stopped answer. */
function play({ usage, ending, cost, streams }: Request, onStop: () => void): ModelProvider {
  const reported = usages[usage]
  return {
    provider: 'fuzzed',
    model: 'fuzzed-1',
    request: async (_request, { signal, onDelta, onWaitForSlot }) => {
      if (ending === 'is refused')
        throw new ModelError({ kind: 'fatal', code: 'no', message: 'No.', status: 400 })
      if (ending === 'never connects' || ending === 'reaches no model')
        throw Object.assign(new Error('No.'), { code: 'ECONNREFUSED' })
      if (ending === 'exceeds the last quota')
        throw new ModelError({ kind: 'fatal', code: 'insufficient_quota', message: 'No.', status: 402 })
      if (ending === 'reaches no limiter') onWaitForSlot?.({ limiter: 'away', ahead: 0 })
      if (ending === 'reaches no limiter')
        throw new ModelError({ kind: 'transient', code: 'limiter_unavailable', message: 'No.' })
      if (ending === 'is unreadable') throw Object.assign(new Error('Invalid JSON.'), { status: 200 })
      const isQueued = ending === 'is stopped in a queue'
      if (isQueued) onWaitForSlot?.({ limiter: 'full', ahead: 0 })
      else if (streams) onDelta('Half of an ', '')
      if (ending === 'breaks off') throw new ModelError({ kind: 'incomplete', code: 'cut', message: 'Cut.' })
      if (ending === 'is stopped' || isQueued) {
        onStop()
        await new Promise((_resolve, reject) => {
          if (signal.aborted) reject(signal.reason as Error)
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
      }
      const counted = reported && { ...reported, ...(cost !== undefined && { providerCost: cost }) }
      return { ...plainAnswer, text: 'Half of an answer.', usage: counted as (typeof usages)['plain'] }
    },
  }
}

/**
 * The contract of shared budgets, with any store and any provider. Nothing stays reserved, every request is charged, and no run
 * hangs.
 */
export function checkBudgets(
  name: string,
  open: () => Promise<BudgetStore> | BudgetStore,
  numRuns = 60,
): void {
  describe(name, () => {
    let store: BudgetStore
    let count = 0
    beforeEach(async () => {
      store = await open()
    })

    test('a request of any provider is settled completely at its end, and no run waits for a completed one', async () => {
      const property = fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 6 }),
        async (requests) => {
          const id = `fuzzed-${(count += 1)}`
          const budget = createBudget({ id, tokens: 1e9, usd: 1000, store })
          const warnings: string[] = []
          let before = { usd: 0, tokens: 0 }
          for (const one of requests) {
            let stop = (): void => undefined
            const agent = createAgent({
              model: createModel(one, () => stop()),
              prices: { 'fuzzed-1': { inputPerMillion: 1, outputPerMillion: 1 } },
              budgets: [budget],
              stream: one.streams,
              sampling: { maxTokens: 100 },
              retry: { maxAttempts: 1 },
            })
            const run = agent.run('Hello.')
            stop = () => run.cancel()
            run.events$.subscribe((event) => {
              if (event.type === 'warning') warnings.push(event.code)
            })
            const { state } = await run.result
            expect(state).toBe(endings[one.ending])
            const { spent, reserved, live } = await untilSettled(() => budget.status())
            expect({ reserved, live }).toEqual({ reserved: { usd: 0, tokens: 0 }, live: 0 })
            expect(
              Number.isSafeInteger(spent.tokens) && Number.isSafeInteger(Math.round(spent.usd * 1e9)),
            ).toBe(true)
            if (unpaidEndings.includes(one.ending)) expect(spent).toEqual(before)
            else expect(spent.tokens).toBeGreaterThan(before.tokens)
            expect(spent.usd).toBeGreaterThanOrEqual(before.usd)
            before = spent
          }
          expect(warnings).not.toContain('budget_unsettled')
          // The rest of a billion tokens covers a request, regardless of the usage of one answer.
          await (await budget.reserve({ tokens: 1000, usd: 0.01 })).settle({ tokens: 1, usd: 0 })
        },
      )
      await fc.assert(property, { numRuns: sampled(numRuns) })
    })

    test('an amount that is not a non-negative number is refused, and the reservation stays', async () => {
      const budget = createBudget({ id: 'amounts', tokens: 1000, usd: 1, store })
      const held = await budget.reserve({ tokens: 600, usd: 0.5 })
      for (const value of [NaN, -1, Infinity, '5'] as number[]) {
        for (const key of ['tokens', 'usd']) {
          const wrong = { code: 'invalid_config', subject: key }
          await expect(held.settle({ [key]: value })).rejects.toMatchObject(wrong)
          await expect(budget.reserve({ [key]: value })).rejects.toMatchObject(wrong)
        }
      }
      expect(await budget.status()).toMatchObject({
        reserved: { tokens: 600 },
        spent: { tokens: 0 },
        live: 1,
      })
      await held.settle({ tokens: 10.2, usd: 1e-12 })
      expect(await budget.status()).toMatchObject({ spent: { tokens: 11, usd: 1e-9 }, live: 0 })
      await expect(budget.reserve({ tokens: 1e308 })).rejects.toMatchObject({ code: 'budget_exceeded' })
    })

    test('after a payment of any size the budget is readable, and its limit can be raised', async () => {
      const budget = createBudget({ id: 'sizes', tokens: 1000, usd: 1, store })
      for (const huge of [1e300, Number.MAX_VALUE]) {
        const held = await createBudget({ id: `sizes-${huge}`, tokens: 1000, usd: 1, store }).reserve({
          tokens: 1,
        })
        await held.settle({ tokens: huge, usd: huge })
      }
      await (await budget.reserve({ tokens: 1 })).settle({ tokens: 5000, usd: 2 })
      await expect(budget.reserve({ tokens: 1 })).rejects.toMatchObject({ code: 'budget_exceeded' })
      const raised = createBudget({ id: 'sizes', tokens: 10_000, usd: 10, store })
      await raised.replaceLimits()
      await (await raised.reserve({ tokens: 1000 })).settle({ tokens: 1 })
      expect(await raised.status()).toMatchObject({ spent: { tokens: 5001, usd: 2 }, live: 0 })
    })

    test('a settlement that the store refuses is reported in the run, and retried', async () => {
      const clock = new SimulatedClock()
      clock.set(Date.now())
      let isAway = false
      const away: BudgetStore = {
        ...bind(store),
        settle: (options) => {
          if (isAway) throw new Error('The disk is full.')
          return store.settle(options)
        },
      }
      const budget = createBudget({ id: 'away', tokens: 100_000, store: away, clock, leaseMs: 3000 })
      const model = play(
        { usage: 'plain', ending: 'answers', cost: undefined, streams: false },
        () => undefined,
      )
      const agent = createAgent({ model, budgets: [budget], sampling: { maxTokens: 100 } })
      isAway = true
      const run = agent.run('Hello.')
      const warnings: AgentEvent[] = []
      run.events$.subscribe((event) => void (event.type === 'warning' && warnings.push(event)))
      expect(await run.result).toMatchObject({ state: 'COMPLETED' })
      expect(warnings).toMatchObject([
        { code: 'budget_unsettled', message: expect.stringMatching(/'away'.*The disk is full/) },
      ])
      isAway = false
      clock.increment(1000)
      expect(await untilSettled(() => budget.status())).toMatchObject({ spent: { tokens: 20 }, live: 0 })
    })
  })
}

function createModel(request: Request, onStop: () => void): ModelProvider {
  const fallback = (first: Ending, last: Ending): ModelProvider =>
    withFallbacks([first, last].map((ending) => play({ ...request, ending }, onStop)))
  switch (request.ending) {
    case 'reaches no model':
      return fallback('never connects', 'never connects')
    case 'is stopped after a limiter failed':
      return fallback('reaches no limiter', 'is stopped')
    case 'exceeds the last quota':
      return fallback('never connects', 'exceeds the last quota')
    default:
      return play(request, onStop)
  }
}

const endings: Record<Ending, string> = {
  answers: 'COMPLETED',
  'is stopped': 'CANCELLED',
  'is stopped in a queue': 'CANCELLED',
  'breaks off': 'ERROR',
  'is unreadable': 'ERROR',
  'is refused': 'ERROR',
  'never connects': 'ERROR',
  'reaches no model': 'ERROR',
  'reaches no limiter': 'ERROR',
  'is stopped after a limiter failed': 'CANCELLED',
  'exceeds the last quota': 'ERROR',
}

/** No model has received these requests, or the model has refused them. */
const unpaidEndings: readonly Ending[] = [
  'is stopped in a queue',
  'is refused',
  'never connects',
  'reaches no model',
  'reaches no limiter',
  'exceeds the last quota',
]

/** The methods of a store. The store may be a class instance. */
function bind(store: BudgetStore): BudgetStore {
  return {
    reserve: (options) => store.reserve(options),
    settle: (options) => store.settle(options),
    renew: (ids, ttlMs) => store.renew(ids, ttlMs),
    list: (id) => store.list(id),
    replaceTerms: (id, terms) => store.replaceTerms(id, terms),
  }
}

/** A stopped request is settled after its run ends. */
async function untilSettled<Status extends { live: number }>(ask: () => Promise<Status>): Promise<Status> {
  for (let turn = 0; ; turn += 1) {
    const status = await ask()
    if (status.live === 0 || turn === 200) return status
    await new Promise((resolve) => setImmediate(resolve))
  }
}
