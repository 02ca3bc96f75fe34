import { createAgent, memoryStore, type Run } from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { sealDraft } from '../../src/core/sessions/log/log-record.js'
import { call, createOneCallModel, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
  if (!holds()) throw new Error('It did not come to pass.')
}

/** A run whose sub-agent asks for approval of a payment. */
async function asking(...besides: 'pay'[]) {
  const store = memoryStore()
  const paid: string[] = []
  const pay = tool('pay', ({ text }) => String(paid.push(String(text))), { needsApproval: true })
  const [below, above] = [new ManualModel(), new ManualModel()]
  const payer = createAgent({ model: below, tools: [pay, tool('note')] })
  const tools = [payer.asTool({ name: 'payer', description: 'Pays.' })]
  const agent = createAgent({ model: above, store, tools })
  const run = agent.run('Pay.', { session: 's' })
  await until(() => above.pending)
  const ask = (name: string, input: object) => ({
    finishReason: 'tool_calls' as const,
    toolCalls: [call('c', name, input)],
  })
  above.pending?.answer(ask('payer', { task: 'Pay.' }))
  await until(() => below.pending)
  const more = besides.map((name) => call(`${name}-2`, name, { text: 'spring' }))
  below.pending?.answer({
    finishReason: 'tool_calls',
    toolCalls: [call('c', 'pay', { text: 'May' }), ...more],
  })
  await run.result
  const approve = async (waiting: Run) => {
    const [question] = (await waiting.result).pending ?? []
    if (question) waiting.approve(question)
    await until(() => below.pending)
    below.pending?.answer({ text: 'It is paid.' })
    await until(() => above.pending)
    above.pending?.answer({ text: 'Done.' })
    return waiting.result
  }
  return { store, agent, run: run as Run, paid, approve, ask, below }
}

test("a fork has its own copy of a sub-agent's question: an approval there runs the call there, and once in its origin", async () => {
  const { store, agent, run, paid, approve } = await asking()
  const before = store.list({ children: true }).map(({ id, head }) => [id, head])
  const fork = await agent.fork('s')
  expect(
    store
      .list({ children: true })
      .filter(({ id }) => before.some(([known]) => known === id))
      .map(({ id, head }) => [id, head]),
  ).toEqual(before)
  const ended = await approve((await agent.resume(fork)) as Run)
  expect(ended).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(ended.messages.find(({ role }) => role === 'tool')?.content).toBe('It is paid.')
  expect(paid).toEqual(['May'])
  expect(await approve(run)).toMatchObject({ state: 'COMPLETED' })
  expect(paid).toEqual(['May', 'May'])
})

test('a fork from before the answer asks again, even if its origin has continued', async () => {
  const { store, agent, run, paid, approve } = await asking()
  const { head } = store.get('s') ?? { head: 0 }
  await approve(run)
  const fork = await agent.fork('s', head)
  expect(await approve((await agent.resume(fork)) as Run)).toMatchObject({ state: 'COMPLETED' })
  expect(paid).toEqual(['May', 'May'])
})

test('if a fork asks first, its waiting sub-agent also asks first', async () => {
  const { agent, ask, below } = await asking()
  const run = (await agent.resume(await agent.fork('s', undefined, { askFirst: true }))) as Run
  const [question] = (await run.result).pending ?? []
  if (question) run.approve(question)
  await until(() => below.pending)
  below.pending?.answer(ask('note', {}))
  expect(await run.result).toMatchObject({
    state: 'WAITING_FOR_INPUT',
    pending: [{ name: 'note', needs: 'approval' }],
  })
})

test('such a fork asks again for an approval that the sub-agent has not read yet', async () => {
  const { agent, run, paid } = await asking('pay')
  const [question] = (await run.result).pending ?? []
  if (question) run.approve(question)
  expect((await run.result).pending).toMatchObject([{ callId: 'c/pay-2' }])
  const fork = (await agent.resume(await agent.fork('s', undefined, { askFirst: true }))) as Run
  const waiting = (await fork.result).pending ?? []
  expect(waiting).toMatchObject([{ callId: 'c/c' }, { callId: 'c/pay-2' }])
  const plain = (await agent.resume(await agent.fork('s'))) as Run
  expect((await plain.result).pending).toMatchObject([{ callId: 'c/pay-2' }])
  expect(paid).toEqual([])
  for (const one of [run, fork, plain]) one.cancel()
  await Promise.all([run.result, fork.result, plain.result])
})

test('a fork also asks for a sub-agent that wrote its question just after the waiting run', async () => {
  const { store, agent } = await asking()
  const child = store.list({ children: true }).find(({ id }) => id !== 's')?.id ?? ''
  const records = store.read(child)
  store.delete(child)
  const lease = store.acquire(child, { holder: 'the test', ttlMs: 1_000 })
  store.append(
    lease,
    records.map(({ seq, at, type, data }) => sealDraft({ seq, at: at + 60_000, type, data })),
  )
  store.release(lease)
  const fork = (await agent.resume(await agent.fork('s'))) as Run
  expect((await fork.result).pending).toMatchObject([{ name: 'pay', needs: 'approval' }])
  fork.cancel()
  await fork.result
})

test('a fork whose sub-agent has no log is refused, and leaves nothing', async () => {
  const { store, agent } = await asking()
  const child = store.list({ children: true }).find(({ id }) => id !== 's')?.id ?? ''
  store.delete(child)
  await expect(agent.fork('s')).rejects.toMatchObject({ code: 'nothing_to_resume', subject: 'c' })
  expect(store.list({ children: true }).map(({ id }) => id)).toEqual(['s'])
})

/**
 * Three nested agents. The lowest pays without asking. Each model picks its turn by the number of results it
 * has read.
 */
function crew(store: SyncSessionStore, paid: string[]) {
  const asking = (name: string, input: object) => createOneCallModel(name, undefined, input)
  const pay = tool('pay', ({ text }) => String(paid.push(String(text))))
  const payer = createAgent({ model: asking('pay', { text: 'May' }), tools: [pay] })
  const clerk = createAgent({
    model: asking('payer', { task: 'Pay.' }),
    tools: [payer.asTool({ name: 'payer', description: 'Pays.' })],
  })
  return createAgent({
    model: asking('clerk', { task: 'Pay.' }),
    tools: [clerk.asTool({ name: 'clerk', description: 'Pays.' })],
    store,
  })
}

test.each([
  ['in one process', false],
  ['in another process after each answer', true],
])('if a fork asks first, sub-agents that start in it ask first, at every depth: %s', async (_, moves) => {
  const store = memoryStore()
  const paid: string[] = []
  await crew(store, paid).run('Pay.', { session: 's' }).result
  expect(paid).toEqual(['May'])
  const fork = await crew(store, paid).fork('s', 2, {
    edit: { message: 'm1', content: 'Pay less.' },
    askFirst: true,
  })
  let run = (await crew(store, paid).resume(fork)) as Run
  const requests: string[] = []
  for (;;) {
    const result = await run.result
    const [question] = result.pending ?? []
    if (!question) break
    expect(paid).toEqual(['May'])
    requests.push(question.name)
    if (moves) {
      await crew(store, paid).send(fork, { type: 'approve', callId: question.callId })
      run = (await crew(store, paid).resume(fork)) as Run
    } else run.approve(question)
  }
  expect(requests).toEqual(['clerk', 'payer', 'pay'])
  expect(paid).toEqual(['May', 'May'])
})
