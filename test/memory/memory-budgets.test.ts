import { createBudget, type SharedBudget } from '../../src/fleet/index.js'
import { type AgentOptions, createAgent, memoryStore } from '../../src/index.js'
import { memory } from '../../src/memory/memory.js'

const documents = [
  { source: 'leave.md', text: 'Everyone has 30 days of leave.' },
  { source: 'travel.md', text: 'Trains are booked in second class.' },
]

interface Asked {
  model: string
  input: string[]
}

/** A client that answers and records its requests. `usage` is the reported token count per request. */
function clientOf(answer: (request: Asked) => unknown = () => undefined, usage?: number) {
  const requests: Asked[] = []
  const create = async (body: Asked) => {
    requests.push(body)
    const response = await answer(body)
    const data = body.input.map((text, index) => ({ index, embedding: [text.length, 1] }))
    return response ?? { data, ...(usage !== undefined && { usage: { prompt_tokens: usage } }) }
  }
  return { requests, client: { embeddings: { create } } as never }
}

const budgetOf = (options: object = {}) =>
  createBudget({ id: 'app', tokens: 10_000, store: memoryStore(), ...options })

const small = 'text-embedding-3-small'

test('an embedding reserves before its request, and settles its actual usage', async () => {
  const budget = budgetOf({ usd: 1 })
  const reserved: number[] = []
  const { client } = clientOf(async () => {
    const { reserved: held, live } = await budget.status()
    reserved.push(held.tokens)
    expect(held.usd).toBeGreaterThan(0)
    expect(live).toBe(1)
  }, 7)
  const known = memory({ documents, embeddings: { client, model: small, budgets: [budget] } })
  await known.retrieve('holiday')
  // The documents, then the query.
  expect(reserved).toHaveLength(2)
  expect(reserved[0]).toBeGreaterThan(reserved[1] ?? Infinity)
  const { spent, reserved: held } = await budget.status()
  // According to the price table: 0.02 USD per million tokens.
  expect(spent).toEqual({ tokens: 14, usd: 0.00000028 })
  expect(held).toEqual({ tokens: 0, usd: 0 })
})

test('an answer without usage counts as reserved', async () => {
  const budget = budgetOf()
  const { client } = clientOf()
  await memory({ documents, embeddings: { client, model: 'own', budgets: [budget] } }).retrieve('holiday')
  expect((await budget.status()).spent.tokens).toBeGreaterThan(15)
})

test('the margin grows if a model counts more than estimated', async () => {
  const budget = budgetOf()
  const { client } = clientOf(() => undefined, 900)
  const known = memory({ documents, embeddings: { client, model: 'counts-more', budgets: [budget] } })
  await known.retrieve('holiday')
  const held: number[] = []
  const { client: next } = clientOf(async () => void held.push((await budget.status()).reserved.tokens), 900)
  await memory({ documents, embeddings: { client: next, model: 'counts-more', budgets: [budget] } }).retrieve(
    'leave',
  )
  expect(held[1]).toBeGreaterThanOrEqual(900)
})

test('a used-up budget refuses the request, and the search continues after a refill', async () => {
  const budget = budgetOf({ tokens: 5 })
  const { client, requests } = clientOf()
  const known = memory({ documents, embeddings: { client, model: 'own', budgets: [budget] } })
  await expect(known.retrieve('holiday')).rejects.toMatchObject({
    name: 'BudgetError',
    code: 'budget_exceeded',
    subject: 'app',
  })
  expect(requests).toEqual([])
  const found = await memory({
    documents,
    embeddings: { client, model: 'own', budgets: [budgetOf()] },
  }).retrieve('holiday')
  expect(found.length).toBeGreaterThan(0)
})

test('neither of two budgets keeps a reservation if the other refuses', async () => {
  const [full, empty] = [budgetOf({ id: 'a' }), budgetOf({ id: 'b', tokens: 5 })]
  const { client, requests } = clientOf()
  const known = memory({ documents, embeddings: { client, model: 'own', budgets: [empty, full] } })
  await expect(known.retrieve('holiday')).rejects.toMatchObject({ subject: 'b' })
  expect(requests).toEqual([])
  expect(await full.status()).toMatchObject({ live: 0, spent: { tokens: 0 }, reserved: { tokens: 0 } })
})

test.each([
  ['was refused with a status', Object.assign(new Error('No.'), { status: 429 }), false],
  ['never reached the service', new Error('No.', { cause: { code: 'ECONNREFUSED' } }), false],
  ['broke off', new Error('socket hang up'), true],
])('a request that %s', async (_what, error, isPaid) => {
  const budget = budgetOf()
  const { client } = clientOf(() => Promise.reject(error))
  const known = memory({ documents, embeddings: { client, model: 'own', budgets: [budget] } })
  await expect(known.retrieve('holiday')).rejects.toBe(error)
  const { spent, live } = await budget.status()
  expect(live).toBe(0)
  expect(spent.tokens > 0).toBe(isPaid)
})

test('a budget in USD needs the price of the model, which inputPerMillion sets', async () => {
  const { client, requests } = clientOf(() => undefined, 1_000_000)
  const budget = createBudget({ id: 'usd', usd: 5, store: memoryStore() })
  const embeddings = { client, model: 'no-such-model', budgets: [budget] }
  await expect(memory({ documents, embeddings }).retrieve('holiday')).rejects.toMatchObject({
    code: 'unknown_price',
    message: expect.stringContaining('embeddings.inputPerMillion'),
  })
  expect(requests).toEqual([])
  await memory({ documents, embeddings: { ...embeddings, inputPerMillion: 0.5 } }).retrieve('holiday')
  expect((await budget.status()).spent.usd).toBe(1)
})

test.each([
  [{ budgets: 5 }, /embeddings\.budgets must be a list of budgets/],
  [{ budgets: [{}] }, /embeddings\.budgets\[0\]/],
  [{ inputPerMillion: -1 }, /embeddings\.inputPerMillion/],
])('refuses %j', (more, message) => {
  const { client } = clientOf()
  expect(() => memory({ embeddings: { client, model: 'own', ...more } as never })).toThrow(message)
})

describe('a run whose search exceeds a budget', () => {
  /** A model that must not receive requests. */
  const model = {
    provider: 'own',
    model: 'own',
    request: () => Promise.reject(new Error('The model is asked.')),
  }
  const { client } = clientOf()
  const runOf = (found: NonNullable<AgentOptions['memory']>) =>
    createAgent({ model, memory: found }).run('How much leave do I have?').result
  const searchedWith = (budget: SharedBudget) =>
    memory({ documents, embeddings: { client, model: 'own', budgets: [budget] } })

  test.each(['end', 'wait'])('ends before its request, and names the budget: %s', async (onEmpty) => {
    const budget = budgetOf({ tokens: 5, per: 'day', onEmpty })
    expect(await runOf(searchedWith(budget))).toMatchObject({
      state: 'BUDGET_EXCEEDED',
      reason: 'shared_budget',
      steps: 0,
      error: {
        code: 'shared_budget',
        budget: 'app',
        recoverable: true,
        message: expect.stringContaining("The budget 'app' is used up"),
      },
    })
  })

  test('also ends if a custom retriever reserves', async () => {
    const budget = budgetOf({ tokens: 5 })
    const retrieve = async () => {
      await (await budget.reserve({ tokens: 100 })).settle({ tokens: 100 })
      return []
    }
    expect(await runOf({ retrieve })).toMatchObject({
      state: 'BUDGET_EXCEEDED',
      reason: 'shared_budget',
      error: { budget: 'app' },
    })
  })

  test('ends in ERROR if its price is unknown', async () => {
    const budget = createBudget({ id: 'usd', usd: 5, store: memoryStore() })
    expect(await runOf(searchedWith(budget))).toMatchObject({
      state: 'ERROR',
      reason: 'shared_budget',
      error: { code: 'shared_budget_unknown_price', budget: 'usd' },
    })
  })

  test.each(['token_budget', 'shared_budget'])(
    'ends with a retriever error if a retriever fails with the code %s',
    async (code) => {
      const retrieve = () => Promise.reject(Object.assign(new Error('No.'), { code, budget: 'theirs' }))
      expect(await runOf({ retrieve })).toMatchObject({ state: 'ERROR', reason: 'internal' })
    },
  )
})
