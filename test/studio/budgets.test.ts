import { createBudget } from '../../src/fleet/index.js'
import { memoryStore } from '../../src/index.js'
import type { SessionsView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

/** A session in a studio whose next request exceeds the shared budget. */
async function refused(onEmpty: 'end' | 'wait') {
  const store = memoryStore()
  const budget = createBudget({ id: 'tenant', tokens: 2_000, per: 'day', onEmpty, store })
  await (await budget.reserve({ tokens: 1_500 })).settle({ tokens: 1_500 })
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue.' }], {
    budgets: [budget],
    sampling: { maxTokens: 1_000 },
  })
  const result = await agent.run('Which colour?', { session: 's' }).result
  const wakeAt = 'wakeAt' in result ? result.wakeAt : undefined
  const visitor = await visit({ store, agent })
  const view = await visitor.get<SessionView>(paths.session('s'))
  const list = await visitor.get<SessionsView>(paths.sessions)
  await close()
  const date = `${new Date(wakeAt ?? 0).toISOString().slice(0, 19).replace('T', ' ')} UTC`
  return { view, list, wakeAt, date }
}

test('a run that waits for a shared budget names it, its spent amount and the wake time, and sleeps', async () => {
  const { view, list, wakeAt, date } = await refused('wait')
  const { verdict, rows, bars, session } = view
  expect(verdict.text).toMatch(
    new RegExp(
      `^Waiting for the shared budget 'tenant' until ${date}\\. A waker will wake it. You can wake it earlier. .*1500 of 2000 tokens have been spent, and the request may use up to \\d+`,
    ),
  )
  const last = rows.at(-1)
  expect(last).toMatchObject({
    label: 'waiting for the shared budget tenant',
    flags: ['budget'],
    wakeAt,
  })
  expect(verdict.seq).toBe(last?.seq)
  expect(bars.at(-1)).toMatchObject({ lane: 'waits', label: `budget tenant until ${date}`, to: null })
  expect(session).toMatchObject({ status: 'sleeping', reason: 'shared_budget', wakeAt })
  expect(list.sessions).toMatchObject([{ status: 'sleeping', wakeAt }])
  // The session has not failed.
  expect(list.days.flatMap(({ failures }) => Object.keys(failures))).toEqual([])
})

test('a run that a shared budget stopped names it, and its spent amount', async () => {
  const { view, list } = await refused('end')
  expect(view.verdict).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'shared_budget' })
  expect(view.verdict.text).toMatch(/^The budget 'tenant' is used up: 1500 of 2000 tokens have been spent/)
  expect(view.rows.at(-1)).toMatchObject({
    label: 'the shared budget tenant is used up',
    flags: ['budget'],
  })
  expect(view.session.status).toBe('ended')
  expect(list.days.flatMap(({ failures }) => Object.keys(failures))).toEqual(['shared_budget'])
})

test('a run whose search a shared budget stopped shows the same', async () => {
  const store = memoryStore()
  const budget = createBudget({ id: 'tenant', tokens: 10, store })
  const retrieve = async () => {
    await budget.reserve({ tokens: 100 })
    return []
  }
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue.' }], { memory: { retrieve } })
  await agent.run('Which colour?', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const view = await visitor.get<SessionView>(paths.session('s'))
  await close()
  expect(view.verdict).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'shared_budget' })
  expect(view.rows.at(-1)).toMatchObject({
    label: 'the shared budget tenant is used up',
    flags: ['budget'],
  })
})
