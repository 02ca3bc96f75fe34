import {
  createAgent,
  memoryStore,
  type ModelProvider,
  type SessionStore,
  StoreError,
} from '../../src/index.js'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import { call, plainAnswer } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'

/** Every append call of the processes, in order. */
interface Written {
  session: string
  args: Parameters<SessionStore['append']>
}

/** Selects its turn by the number of answers in the request. */
function scripted(...turns: Partial<ModelResponse>[]): ModelProvider {
  return {
    provider: 'scripted',
    model: 'scripted-1',
    request: ({ messages }) => {
      const turn = turns[messages.filter(({ role }) => role === 'assistant').length] ?? { text: 'No more.' }
      return Promise.resolve({
        ...plainAnswer,
        ...turn,
        finishReason: turn.toolCalls ? 'tool_calls' : 'stop',
      })
    },
  }
}

const toolCalls = (name: string) => ({ toolCalls: [call('a', name, { task: 'Look.' })] })

function createLead(store: SessionStore, look = tool('look', () => 'seen')) {
  const crew = createAgent({
    model: scripted(toolCalls('look'), { text: 'It is there.' }),
    tools: [look],
    prices: null,
  })
  return createAgent({
    model: scripted(toolCalls('research'), { text: 'Done.' }),
    tools: [crew.asTool({ name: 'research', description: 'Looks things up.' })],
    prices: null,
    store,
  })
}

/** A run of a lead and its sub-agent, as a list of writes. */
async function record({ isCancelled = false } = {}): Promise<Written[]> {
  const inner = memoryStore()
  const written: Written[] = []
  const append: SessionStore['append'] = (...args) => {
    written.push({ session: args[0].sessionId, args })
    return Promise.resolve(inner.append(...args))
  }
  const look = tool('look', () => (isCancelled ? new Promise(() => undefined) : 'seen'))
  const run = createLead({ ...inner, append }, look).run('Go.', { session: 's' })
  if (isCancelled) {
    await until(() => look.inputs.length > 0)
    run.cancel()
  }
  await run.result
  await until(() => inner.list({ parent: 's', state: 'RUNNING' }).length === 0)
  return written
}

/** A store without the last writes of the two sessions. */
async function leave(written: readonly Written[], missing: { lead: number; child: number }) {
  const store = memoryStore()
  const child = written.find(({ session }) => session !== 's')?.session ?? ''
  for (const session of ['s', child]) {
    const all = written.filter((one) => one.session === session)
    const lease = store.acquire(session, { holder: 'a process that is gone', ttlMs: 1_000 })
    for (const { args } of all.slice(0, all.length - (session === 's' ? missing.lead : missing.child)))
      store.append(lease, args[1], args[2])
    store.release(lease)
  }
  return { store, child, getState: (id: string) => store.get(id)?.summary?.state }
}

describe('a sub-agent that a process left running with its call closed', () => {
  test('is ended by the process that resumes the run', async () => {
    const { store, child, getState } = await leave(await record(), { lead: 1, child: 1 })
    expect([getState('s'), getState(child)]).toEqual(['RUNNING', 'RUNNING'])
    const run = await createLead(store).resume('s')
    expect(getState(child)).toBe('CANCELLED')
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  test('is ended with a run that is cancelled in the store', async () => {
    const { store, child, getState } = await leave(await record(), { lead: 1, child: 1 })
    expect(await createLead(store).send('s', { type: 'cancel' })).toMatchObject({ status: 'applied' })
    expect([getState('s'), getState(child)]).toEqual(['CANCELLED', 'CANCELLED'])
  })

  test('is ended by the next run of a session whose run has ended without it', async () => {
    const { store, child, getState } = await leave(await record({ isCancelled: true }), { lead: 0, child: 1 })
    expect([getState('s'), getState(child)]).toEqual(['CANCELLED', 'RUNNING'])
    await createLead(store).run('And now?', { session: 's' }).result
    expect(getState(child)).toBe('CANCELLED')
  })

  test('is ended by its own process once the process reaches the store again', async () => {
    const inner = memoryStore()
    let isAway = false
    const held: (() => void)[] = []
    const append: SessionStore['append'] = async (...args) => {
      if (isAway && args[0].sessionId !== 's') {
        await new Promise<void>((resolve) => held.push(resolve))
        throw new StoreError('store_unavailable', 'The connection is lost.', args[0].sessionId)
      }
      return inner.append(...args)
    }
    let goOn = (): void => undefined
    const store: SessionStore = { ...inner, append }
    const look = tool('look', () => new Promise((resolve) => (goOn = () => resolve('seen'))))
    const run = createLead(store, look).run('Go.', { session: 's' })
    await until(() => look.inputs.length > 0)
    isAway = true
    goOn()
    await until(() => held.length > 0)
    run.cancel()
    await run.result
    isAway = false
    const [child = ''] = inner.list({ parent: 's' }).map(({ id }) => id)
    for (const free of held) free()
    await until(() => inner.get(child)?.summary?.state === 'CANCELLED')
    expect(inner.get('s')?.summary?.state).toBe('CANCELLED')
  })

  test('costs an agent without sub-agents no store call', async () => {
    const inner = memoryStore()
    let lists = 0
    const list: SessionStore['list'] = (options) => {
      lists += 1
      return Promise.resolve(inner.list(options))
    }
    const store = { ...inner, list }
    const agent = createAgent({ model: scripted(), tools: [tool('look', () => 'seen')], prices: null, store })
    await agent.run('Go.', { session: 's' }).result
    await agent.run('Go on.', { session: 's' }).result
    expect(lists).toBe(0)
  })
})
