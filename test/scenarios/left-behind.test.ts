import { SimulatedClock } from 'xstate'
import { createAgent, runSession } from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'

// The failures that `npm run simulate` found first, reduced to their shortest form.

const pay = () => tool('pay', () => 'ok', { needsApproval: true })

/** A separate process. */
function processOn(store: SessionStore) {
  const model = new ManualModel()
  return { model, agent: createAgent({ model, store, tools: [pay()], clock: new SimulatedClock() }) }
}

it('a process that has slept through its lease leaves new messages to the new lease owner', async () => {
  let now = 1_790_000_000_000
  const store = memoryStore({ now: () => now })
  const first = processOn(store)
  const begun = runSession(first.agent, { session: 's', input: 'Pay.' })
  await until(() => first.model.pending !== null)
  first.model.pending?.answer({ toolCalls: [call('a', 'pay', { n: 1 })] })
  await begun
  await first.agent.send('s', { type: 'approve', callId: 'a' })
  // One process takes the session and falls asleep before it reads the message.
  let wake = (): void => undefined
  const asleep = new Promise<void>((resolve) => (wake = resolve))
  const read = async (id: string, after?: number) => {
    await asleep
    return store.inbox.read(id, after)
  }
  const sleeper = processOn({ ...store, inbox: { ...store.inbox, read } })
  const slept = runSession(sleeper.agent, { session: 's' })
  await until(() => store.get('s')?.holder != null)
  now += 31_000
  // Another process continues to a new question and gets its answer.
  const second = processOn(store)
  const driven = runSession(second.agent, { session: 's' })
  await until(() => second.model.pending !== null)
  second.model.pending?.answer({ toolCalls: [call('b', 'pay', { n: 2 })] })
  expect(await driven).toMatchObject({ state: 'WAITING_FOR_INPUT' })
  const { message } = await second.agent.send('s', { type: 'approve', callId: 'b' })
  wake()
  await expect(slept).rejects.toMatchObject({ code: 'lease_lost' })
  await settled()
  expect(store.inbox.read('s').map((each) => each.message)).toContain(message)
  const third = processOn(store)
  const last = runSession(third.agent, { session: 's' })
  await until(() => third.model.pending !== null)
  third.model.pending?.answer({ text: 'Paid.' })
  expect(await last).toMatchObject({ state: 'COMPLETED' })
})

it('a message that started a turn is not delivered again under its id, for any order of reads', async () => {
  const store = memoryStore()
  const { model, agent } = processOn(store)
  const first = runSession(agent, { session: 's', input: 'Go.' })
  await until(() => model.pending !== null)
  await agent.send('s', { type: 'message', when: 'next', input: 'And this.', messageId: 'm1' })
  model.pending?.answer({ text: 'Done.' })
  await until(() => model.attempts.length === 2)
  expect(
    await agent.send('s', { type: 'message', when: 'now', input: 'And this.', messageId: 'm1' }),
  ).toMatchObject({ status: 'applied' })
  model.pending?.answer({ text: 'Done again.' })
  expect(await first).toMatchObject({ state: 'COMPLETED', turn: 2 })
  const { messages } = await agent.replay('s')
  expect(messages.filter(({ content }) => JSON.stringify(content).includes('And this.'))).toHaveLength(1)
})

it('a session is listed as active from the record that makes it active', async () => {
  const inner = memoryStore()
  const states: unknown[] = []
  const store: SessionStore = {
    ...inner,
    append: (lease, records, summary, options) => {
      const answer = inner.append(lease, records, summary, options)
      if (records.some(({ data }) => data.includes('"APPROVE"'))) states.push(inner.get('s')?.summary?.state)
      return answer
    },
  }
  const { model, agent } = processOn(store)
  const begun = runSession(agent, { session: 's', input: 'Pay.' })
  await until(() => model.pending !== null)
  model.pending?.answer({ toolCalls: [call('a', 'pay')] })
  const { head } = await begun
  const driven = runSession(agent, { session: 's', answers: [{ type: 'approve', callId: 'a' }], at: head })
  await until(() => model.attempts.length === 2)
  expect(states).toEqual(['WAITING_FOR_TOOL'])
  model.pending?.answer({ text: 'Paid.' })
  expect(await driven).toMatchObject({ state: 'COMPLETED' })
})
