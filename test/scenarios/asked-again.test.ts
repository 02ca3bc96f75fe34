import { agentMachine } from '../../machines/agent.machine.js'
import { transition } from 'xstate'
import { type PendingCall, memoryStore, type SessionMessage } from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { again, stage } from '../support/play.js'
import { ask, pair, research } from '../support/sub-agents.js'
import { text, tool } from '../support/tools.js'

/** A model that restarts its call ids in every step and repeats the same call. */
const pays: Turn = { toolCalls: [{ id: 'call_0', name: 'pay', arguments: { amount: 1 } }] }
const turns = [pays, pays, text('Done.')]
const paying = () => tool('pay', () => 'paid', { needsApproval: true })

type Waiting = { pending?: readonly PendingCall[] }
function questionOf({ pending = [] }: Waiting): PendingCall {
  const [call] = pending
  if (!call) throw new Error('A call waits.')
  return call
}

async function resting(store = memoryStore()) {
  const pay = paying()
  const play = await stage(turns, { store, tools: [pay] })
  const first = questionOf(await play.agent.run('Go.', { session: 's' }).result)
  return { play, agent: play.agent, store, pay, first }
}

/** Answers the first call, then waits for the second one. */
async function restingAgain(from: Awaited<ReturnType<typeof resting>>) {
  await from.agent.send('s', { type: 'approve', ...from.first })
  const run = await from.agent.resume('s')
  const second = questionOf(await run.result)
  expect(second).toMatchObject({ callId: 'call_0_4', fingerprint: from.first.fingerprint })
  expect(second.messageId).not.toBe(from.first.messageId)
  return { run, second }
}

const late = { code: 'unknown_call' }

describe('an answer to a call that the model repeats', () => {
  it('applies to the message that made the call, in any form', async () => {
    const started = await resting()
    const { agent, pay, first } = started
    const { run, second } = await restingAgain(started)
    for (const type of ['approve', 'reject'] as const)
      await expect(agent.send('s', { type, ...first })).rejects.toMatchObject(late)
    expect(() => run.approve(first)).toThrow(expect.objectContaining(late))
    expect(() => run.reject(first.callId, '', first)).toThrow(expect.objectContaining(late))
    expect(pay.inputs).toHaveLength(1)
    await agent.send('s', { type: 'approve', ...second })
    expect(await (await agent.resume('s')).result).toMatchObject({ state: 'COMPLETED' })
    expect(pay.inputs).toHaveLength(2)
  })

  it('is ignored if it arrives too late', async () => {
    const started = await resting()
    const { agent, store, pay, first } = started
    const { callId, fingerprint } = first
    await agent.send('s', { type: 'approve', callId, fingerprint })
    const [left] = store.inbox.read('s')
    await (await agent.resume('s')).result
    // Simulates an entry that a process failed to remove, under a different number.
    store.inbox.put('s', left?.text ?? '')
    expect(await (await agent.resume('s')).result).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    expect(pay.inputs).toHaveLength(1)
    expect(store.inbox.read('s')).toEqual([])
  })

  it('is refused if another answer reached the inbox first', async () => {
    const started = await resting()
    const { store, pay, first } = started
    const { callId, fingerprint } = first
    let overtake: (() => Promise<unknown>) | null = () => restingAgain(started)
    const slow = {
      ...store,
      inbox: {
        ...store.inbox,
        put: async (id: string, message: string) => {
          const before = overtake
          overtake = null
          await before?.()
          return store.inbox.put(id, message)
        },
      },
    }
    const other = again(started.play, { store: slow, tools: [pay] })
    const message: SessionMessage = { type: 'approve', callId, fingerprint }
    await expect(other.send('s', message)).rejects.toMatchObject(late)
    expect(await (await started.agent.resume('s')).result).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    expect(pay.inputs).toHaveLength(1)
  })

  it('changes the chart only if it is for the current call', async () => {
    const { run } = await restingAgain(await resting())
    const { callId, fingerprint, messageId } = questionOf(await run.result)
    const at = agentMachine.resolveState(run.snapshot() as never)
    const entry = (more: object) =>
      transition(agentMachine, at, { type: 'APPROVE', callId, fingerprint, now: 1, ...more })[0].value
    expect(entry({ messageId: 'm2' })).toEqual(at.value)
    expect(entry({ messageId })).not.toEqual(at.value)
    expect(entry({})).not.toEqual(at.value)
  })
})

/** The store state if the process had died before later records were written. */
function cutTo(store: SyncSessionStore, cut: Record<string, number>): SyncSessionStore {
  const copy = memoryStore()
  for (const { id } of store.list({ children: true })) {
    const lease = copy.acquire(id, { holder: 'a copy', ttlMs: 1000 })
    copy.append(lease, store.read(id).slice(0, cut[id]))
    copy.release(lease)
  }
  return copy
}

describe('a repeated question of a sub-agent', () => {
  it('is a new question: the answer to the first does not answer the second', async () => {
    const store = memoryStore()
    const pay = paying()
    const tools = [pay]
    const { parent, child } = await pair([ask(), text('Done.')], turns, {
      parent: { store },
      child: { store, tools },
    })
    const { agent } = parent
    const first = questionOf(await agent.run('Go.', { session: 's' }).result)
    await agent.send('s', { type: 'approve', ...first })
    const second = questionOf(await (await agent.resume('s')).result)
    expect(second).toMatchObject({ callId: `${first.callId}_4`, fingerprint: first.fingerprint })
    await expect(agent.send('s', { type: 'approve', ...first })).rejects.toMatchObject(late)
    expect(pay.inputs).toHaveLength(1)

    // The process dies when the sub-agent asks again, before the parent run receives the question.
    const approved = store.read('s').findIndex(({ data }) => data.includes('"APPROVE"'))
    const rest = agentOn(cutTo(store, { s: approved + 1 }), child, tools)
    expect(questionOf(await (await rest.resume('s')).result)).toMatchObject({ messageId: second.messageId })
    expect(pay.inputs).toHaveLength(1)
  })

  function agentOn(
    store: SyncSessionStore,
    child: Awaited<ReturnType<typeof pair>>['child'],
    tools: ReturnType<typeof paying>[],
  ) {
    const below = again(child, { store, tools })
    return again(child, { store, tools: [research({ agent: below } as never)] })
  }
})
