import { jest } from '@jest/globals'
import { createBudget } from '../../src/fleet/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { buildFleet, type Child, startChild } from '../stores/child.js'
import { makeFolder, removeFolder } from '../stores/folder.js'

jest.setTimeout(60_000)

const built = buildFleet()
const dir = makeFolder()
const children: Child[] = []
afterAll(async () => {
  for (const child of children) {
    child.process.kill('SIGKILL')
    await child.ended
  }
  built.remove()
  removeFolder(dir)
})

const usd = 0.2

/** A process with 50 concurrent runs. Its provider reports each charge before it answers. Some answers never arrive. */
const script = (answers: boolean, limit = usd): string => `
  const { createAgent, createBudget } = await import(${JSON.stringify(built.url)})
  const budget = createBudget({ id: 'shared', usd: ${limit}, store: fileStore({ dir }), leaseMs: 1000 })
  let paid = 0
  const model = {
    provider: 'own',
    model: 'm',
    async request() {
      const outputTokens = 500 + Math.floor(Math.random() * 501)
      paid += 40 * 1e-6 + outputTokens * 2e-6
      if (!${String(answers)}) {
        say({ paid })
        await new Promise(() => {})
      }
      await new Promise((resolve) => setImmediate(resolve))
      const usage = { inputTokens: 40, outputTokens, totalTokens: 40 + outputTokens, cachedInputTokens: 0, reasoningTokens: 0 }
      return { text: 'Done.', reasoning: '', refusal: null, toolCalls: [], finishReason: 'stop', complete: true, usage, model: 'm' }
    },
  }
  const prices = { m: { inputPerMillion: 1, outputPerMillion: 2 } }
  const agent = createAgent({ model, prices, sampling: { maxTokens: 1000 }, budgets: [budget] })
  const input = 'Twelve words about nothing, so that there is something to be estimated here.'
  const results = await Promise.all(Array.from({ length: 50 }, () => agent.run(input).result))
  const ends = [...new Set(results.map(({ state, reason }) => state + ' ' + reason))]
  const { error } = results.find((one) => one.error) ?? {}
  say({ paid, ends, error })
`

interface Said {
  paid: number
  ends?: string[]
  error?: { code: string; message: string }
}

const start = (text: string): Child => {
  const child = startChild(built.url, dir, text)
  children.push(child)
  return child
}

test('four processes of 50 runs each, and one that was killed during requests, never exceed their budget', async () => {
  const doomed = start(script(false))
  let lost = 0
  // It has 50 active requests.
  for (let n = 0; n < 50; n += 1) lost = ((await doomed.next()) as Said).paid
  doomed.process.kill('SIGKILL')
  await doomed.ended
  const four = Array.from({ length: 4 }, () => start(script(true)))
  const reports = (await Promise.all(four.map((child) => child.next()))) as Said[]
  const paid = lost + reports.reduce((sum, one) => sum + one.paid, 0)
  expect(paid).toBeLessThanOrEqual(usd)
  expect(new Set(reports.flatMap(({ ends }) => ends))).toContain('BUDGET_EXCEEDED shared_budget')
  const store = fileStore({ dir })
  const { spent, reserved, left } = await createBudget({ id: 'shared', usd, store }).status()
  store.close()
  expect(spent.usd).toBeGreaterThanOrEqual(paid - 1e-9)
  expect(spent.usd).toBeLessThanOrEqual(usd)
  expect(reserved.usd).toBe(0)
  // No further request fitted into the budget.
  expect(left.usd).toBeLessThan(0.0025)
})

test('a process that opens a budget with another limit is refused, and both limits are named', async () => {
  const child = start(script(true, 7))
  const { paid, ends, error } = (await child.next()) as Said
  expect(paid).toBe(0)
  expect(ends).toEqual(['ERROR shared_budget'])
  expect(error).toMatchObject({
    code: 'shared_budget_conflict',
    message: expect.stringMatching(/usd 0\.2 .*usd 7/),
  })
})
