import { SimulatedClock } from 'xstate'
import {
  type Agent,
  createAgent,
  defineAgents,
  runSession,
  type Message,
  memoryStore,
  StatewrightError,
} from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { paths } from '../../src/studio/routes.js'
import { chatHandler } from '../../src/ui/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { visit } from '../studio/visitor.js'

/** A store whose leases the test expires, and the processes that use it. */
function place(): { store: SyncSessionStore; enter: (options?: object) => Process; outlive: () => void } {
  let now = 1_000_000
  const store = memoryStore({ now: () => now })
  return {
    store,
    /** A separate process, with an agent whose model's answers the test controls. */
    enter: (options = {}) => {
      const [model, clock] = [new ManualModel(), new SimulatedClock()]
      return { model, clock, agent: createAgent({ model, store, clock, ...options }) }
    },
    /** The leases of all killed processes have expired. */
    outlive: () => void (now += 60_000),
  }
}

interface Process {
  model: ManualModel
  clock: SimulatedClock
  agent: Agent
}

async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
  if (!holds()) throw new Error('It did not come to pass.')
}

const events = (store: SyncSessionStore, id: string): string[] =>
  store.read(id).map(({ data }) => (JSON.parse(data) as { event?: { type: string } }).event?.type ?? '–')

const codeOf = (error: unknown): string => (error instanceof StatewrightError ? error.code : String(error))

const wants = (callId: string) => ({
  toolCalls: [call(callId, 'pay', {})],
  finishReason: 'tool_calls' as const,
})

/** The refusal code for each way to resume a run, or null where it resumes. */
const ways: Record<string, (agent: Agent, session: string) => Promise<string | null>> = {
  'agent.resume': async (agent, session) => agent.resume(session).then(() => null, codeOf),
  drive: async (agent, session) => runSession(agent, { session }).then(() => null, codeOf),
  'a studio': async (agent, session) => {
    const visitor = await visit({ agent } as never)
    const answered = await visitor.post(paths.answers(session), { type: 'resume' })
    return (answered as { error?: { code: string } }).error?.code ?? null
  },
}

describe('a run continues only with an agent of the same name and version', () => {
  const interrupted = async () => {
    const { store, enter, outlive } = place()
    const billing = enter({ tools: [tool('pay', () => 'paid', { needsApproval: true })] })
    defineAgents({ billing: { agent: billing.agent, version: '3' } })
    void billing.agent.run('Pay.', { session: 's' })
    await until(() => billing.model.pending)
    outlive()
    const other = enter({ tools: [tool('pay', () => 'paid')] })
    return { store, other, before: store.read('s') }
  }
  const others: Record<string, (agent: Agent) => void> = {
    'another name': (agent) => void defineAgents({ support: agent }),
    'another version': (agent) => void defineAgents({ billing: { agent, version: '4' } }),
    'no name': () => undefined,
  }

  const pairs = Object.keys(others).flatMap((who) => Object.keys(ways).map((way) => [who, way] as const))

  test.each(pairs)('not with one of %s, by %s', async (who, way) => {
    const { store, other, before } = await interrupted()
    others[who]?.(other.agent)
    expect(await ways[way]?.(other.agent, 's')).toBe('stranded')
    await settled()
    expect(other.model.attempts).toEqual([])
    expect([store.read('s'), store.get('s')?.holder]).toEqual([before, null])
  })

  test.each(Object.keys(others))('a page of an agent of %s can watch it', async (who) => {
    const { store, other, before } = await interrupted()
    others[who]?.(other.agent)
    const handler = chatHandler({ agent: other.agent, authorize: 'none' })
    const { status, body } = await handler(new Request('http://chat.test/api/chat/s/stream'))
    expect(status).toBe(200)
    // The page polls whether a process has the session. It never resumes the run here.
    for (let i = 0; i < 3; i += 1) {
      other.clock.increment(5000)
      await settled()
    }
    await body?.cancel()
    expect(other.model.attempts).toEqual([])
    expect([store.read('s'), store.get('s')?.holder]).toEqual([before, null])
  })

  test('an accepted version can continue it, and any agent can continue a run of an unnamed agent', async () => {
    const { other } = await interrupted()
    defineAgents({ billing: { agent: other.agent, version: '4', accepts: ['3', '4'] } })
    const run = await other.agent.resume('s')
    await until(() => other.model.pending)
    other.model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })

    const { enter, outlive } = place()
    const unnamed = enter()
    void unnamed.agent.run('Go.', { session: 's' })
    await until(() => unnamed.model.pending)
    outlive()
    const named = enter()
    defineAgents({ support: named.agent })
    await named.agent.resume('s')
    await until(() => named.model.pending)
  })

  test('the refusal names the required and the present agents; an ended run is shown to everyone', async () => {
    const { other, store } = await interrupted()
    defineAgents({ billing: { agent: other.agent, version: '4' } })
    await expect(other.agent.resume('s')).rejects.toThrow(
      "Session 's' needs billing 3, but this process has billing (accepts 4). Deploy that version, or accept it: " +
        "defineAgents({ billing: { agent, version, accepts: ['3'] } }).",
    )
    await other.agent.send('s', { type: 'cancel' })
    expect((await (await other.agent.resume('s')).result).state).toBe('CANCELLED')
    expect(store.get('s')?.holder).toBeNull()
  })
})

describe('a run that crashes every process that continues it', () => {
  const killing = async (kills: number) => {
    const { store, enter, outlive } = place()
    const first = enter()
    void first.agent.run('Go.', { session: 's' })
    await until(() => first.model.pending)
    for (let i = 0; i < kills; i += 1) {
      outlive()
      const next = enter()
      await next.agent.resume('s')
      await until(() => next.model.pending)
    }
    outlive()
    return { store, last: enter() }
  }

  const callers: Record<string, (process: Process) => Promise<unknown>> = {
    'agent.resume': async ({ agent }) => (await (await agent.resume('s')).result).error?.code,
    drive: async ({ agent }) => (await runSession(agent, { session: 's' })).error?.code,
    'a page': async ({ agent }) => {
      const handler = chatHandler({ agent, authorize: 'none' })
      await (await handler(new Request('http://chat.test/api/chat/s/stream'))).text()
      return (await agent.replay('s')).run?.error?.code
    },
  }

  test.each(Object.keys(callers))('is ended in its log after five crashes, by %s', async (caller) => {
    const { store, last } = await killing(5)
    expect(await callers[caller]?.(last)).toBe('poisoned')
    expect(last.model.attempts).toEqual([])
    expect(events(store, 's').slice(-6)).toEqual([...Array<string>(5).fill('RESUMED'), 'STORE_FAILED'])
    expect(store.get('s')).toMatchObject({ holder: null, summary: { state: 'ERROR' } })
    expect(await callers[caller]?.(last)).toBe('poisoned')
  })

  test('continues until then, and the count restarts after any progress', async () => {
    const { store, last } = await killing(4)
    const run = await last.agent.resume('s')
    await until(() => last.model.pending)
    last.model.pending?.answer(wants('a'))
    await until(() => last.model.attempts.length === 2)
    last.model.pending?.answer({ text: 'Done.' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    const texts = (await last.agent.replay('s')).messages.map(({ role }: Message) => role)
    expect(texts).toEqual(['user', 'assistant', 'tool', 'assistant'])
    expect(events(store, 's').filter((type) => type === 'RESUMED')).toHaveLength(5)
  })

  test('ends its sub-agents and its queued messages, too', async () => {
    const { store, enter, outlive } = place()
    const team = () => {
      const child = enter()
      const above = enter({ tools: [child.agent.asTool({ name: 'research', description: 'Looks.' })] })
      return { child, above }
    }
    const first = team()
    void first.above.agent.run('Go.', { session: 's' })
    await until(() => first.above.model.pending)
    first.above.model.pending?.answer({
      toolCalls: [call('a', 'research', { task: 'Find out.' })],
      finishReason: 'tool_calls',
    })
    await until(() => first.child.model.pending)
    for (let i = 0; i < 5; i += 1) {
      outlive()
      const next = team()
      await next.above.agent.resume('s')
      await until(() => next.child.model.pending)
    }
    outlive()
    const last = team()
    store.inbox.put('s', '{"type":"STEER","text":"Hurry."}')
    expect((await (await last.above.agent.resume('s')).result).error?.code).toBe('poisoned')
    const leases = store
      .list({ children: true })
      .map(({ id, summary, holder }) => [id === 's', summary?.state, holder])
    expect(leases).toHaveLength(2)
    expect(leases).toContainEqual([true, 'ERROR', null])
    expect(leases).toContainEqual([false, 'CANCELLED', null])
    expect(store.inbox.read('s')).toEqual([])
  })
})
