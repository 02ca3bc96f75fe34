import {
  createAgent,
  runSession,
  type SessionResult,
  memoryStore,
  type ModelProvider,
} from '../../src/index.js'
import type { SyncSessionStore } from '../../src/stores/index.js'
import { distant } from '../support/distant.js'
import { call } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

/** Asks for one call, then ends with its result. */
function asking(id: string, name: string): ModelProvider {
  return {
    provider: 'mine',
    model: 'asking-1',
    request: async ({ messages }) => {
      const toolCalls = messages.some(({ role }) => role === 'tool') ? [] : [call(id, name, { task: 'Pay.' })]
      const rest = { reasoning: '', refusal: null, usage: null, model: null, complete: true }
      return { ...rest, text: 'Well.', toolCalls, finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop' }
    },
  }
}

/** Reports each query that the store receives. */
function watched(store: SyncSessionStore, onQuery: () => void): SyncSessionStore {
  const reporting = <Args extends unknown[], Value>(ask: (...args: Args) => Value) => {
    return (...args: Args): Value => {
      onQuery()
      return ask(...args)
    }
  }
  const [acquire, append, release] = [
    reporting(store.acquire),
    reporting(store.append),
    reporting(store.release),
  ]
  return { ...store, acquire, append, release, read: reporting(store.read) }
}

test.each([
  ['synchronously', (store: SyncSessionStore) => store],
  ['asynchronously', (store: SyncSessionStore) => distant(store)],
])(
  'a drive that is stopped at any call to a store that answers %s leaves nothing locked and loses no answer',
  async (_, reached) => {
    let [stops, unheard] = [0, 0]
    for (let at = 1; at <= 12; at += 1) {
      const near = memoryStore()
      let [questions, paid] = [0, 0]
      let stop: AbortController | null = null
      const store = reached(
        watched(near, () => {
          questions += 1
          if (questions === at) stop?.abort()
        }),
      )
      const pay = tool('pay', () => void (paid += 1), { needsApproval: true })
      const helper = createAgent({ model: asking('p', 'pay'), tools: [pay] })
      const tools = [helper.asTool({ name: 'helper', description: 'Helps.' })]
      const driven = (options: object = {}): Promise<SessionResult> => {
        const agent = createAgent({ model: asking('h', 'helper'), store, tools })
        return runSession(agent, { session: 's', input: 'Go.', ...options })
      }
      const leases = () => near.list().flatMap(({ id, holder }) => (holder === null ? [] : [id]))

      const { pending = [], head } = await driven()
      const answers = [{ type: 'approve', callId: pending[0]?.callId }]
      let rest: SessionResult | undefined
      // Twice, because the second drive finds the sub-agent at work.
      for (const engine of ['first', 'second']) {
        if (rest && !rest.stopped) break
        const isHeard = rest !== undefined && !rest.undelivered
        questions = 0
        stop = new AbortController()
        rest = await driven({ answers, at: head, signal: stop.signal })
        expect([at, engine, leases()]).toEqual([at, engine, []])
        expect([at, engine, rest.stopped ? 'stopped' : rest.state]).toEqual([
          at,
          engine,
          rest.stopped ? 'stopped' : 'COMPLETED',
        ])
        // A person who has answered is not asked again.
        if (isHeard) expect([at, rest.state]).not.toEqual([at, 'WAITING_FOR_INPUT'])
        if (rest.stopped) stops += 1
        if (rest.undelivered) unheard += 1
      }
      stop = null
      if (rest?.stopped) rest = await driven({ answers, at: head })
      expect([at, rest?.state, leases()]).toEqual([at, 'COMPLETED', []])
      expect(paid).toBeLessThanOrEqual(1)
    }
    expect(stops).toBeGreaterThan(3)
    expect(unheard).toBeGreaterThan(0)
  },
)
