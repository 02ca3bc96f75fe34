import { jest } from '@jest/globals'
import { type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { type AgentOptions, type Run, defineShield, memoryJournal, memoryStore } from '../../src/index.js'
import { agentOf, calling } from '../growth/scripted.js'
import { distant } from '../support/distant.js'
import { fold } from '../support/fold.js'
import { stage } from '../support/play.js'
import { calls, text, times, tool } from '../support/tools.js'
import { sampled } from '../support/extent.js'

/** The maximum number of listeners on one signal. Node warns of a leak above ten. */
function watchSignals(): { most: () => number } {
  const added = jest.spyOn(EventTarget.prototype, 'addEventListener')
  const removed = jest.spyOn(EventTarget.prototype, 'removeEventListener')
  const changesIn = ({ mock }: typeof added, by: number) =>
    mock.contexts.map((signal, i) => ({ signal, at: mock.invocationCallOrder[i] ?? 0, by }))
  return {
    most: () => {
      const counts = new Map<unknown, number>()
      const changes = [...changesIn(added, 1), ...changesIn(removed as unknown as typeof added, -1)]
      const after = changes
        .filter(({ signal }) => (signal as object) instanceof AbortSignal)
        .sort((a, b) => a.at - b.at)
        .map(({ signal, by }) => {
          counts.set(signal, (counts.get(signal) ?? 0) + by)
          return counts.get(signal) ?? 0
        })
      return Math.max(...after)
    },
  }
}

afterEach(() => {
  jest.restoreAllMocks()
})

describe('listeners on one signal', () => {
  test('are few, for any number of calls that shields check', async () => {
    const signals = watchSignals()
    const mild = (name: string) => defineShield({ name, check: async () => ({ action: 'allow' }) })
    const shields = [mild('one'), mild('other')]
    const theatre = await stage([calls(times(40, ['look', {}])), text('Done.')], {
      tools: [tool('look')],
      shields: { input: shields, toolInput: shields, toolOutput: shields, output: shields },
    })
    expect((await theatre.run().end(2)).state).toBe('COMPLETED')
    expect(signals.most()).toBeLessThanOrEqual(3)
  })

  test('are few, for any number of runs; an abort reaches each of them, and ended runs are released', async () => {
    const signals = watchSignals()
    const theatre = await stage([text('Done.')], {}, 'repeatLast')
    const controller = new AbortController()
    const { signal } = controller
    await Promise.all(times(50, null).map(() => theatre.run('Go.', { signal }).run.result))
    const hanging = await stage([{ hang: true }], {}, 'repeatLast')
    const plays = times(50, null).map(() => hanging.run('Go.', { signal }))
    await hanging.arrival(50)
    controller.abort(new Error('Enough.'))
    const results = await Promise.all(plays.map(({ run }) => run.result))
    expect(results.every(({ state }) => state === 'CANCELLED')).toBe(true)
    expect((await theatre.run('Go.', { signal }).run.result).state).toBe('CANCELLED')
    expect(signals.most()).toBeLessThanOrEqual(3)
  })
})

describe('a batch of very many calls', () => {
  const count = 500

  /** Runs the work while other tasks get event loop turns, and counts the operations between turns. */
  async function inCompany(options: Partial<AgentOptions>, onTurn: (run: Run, turn: number) => void) {
    const seen = { begun: 0, looks: 0, turns: 0, longest: 0 }
    let stretch = 0
    const note = (): void => {
      stretch += 1
      seen.longest = Math.max(seen.longest, stretch)
    }
    const mild = defineShield({
      name: 'mild',
      check: async () => {
        seen.looks += 1
        note()
        return { action: 'allow' }
      },
    })
    const look = tool('look', () => {
      seen.begun += 1
      note()
      return `Seen ${seen.begun}.`
    })
    const isShielded = 'shields' in options
    const agent = agentOf(calling(count), {
      ...options,
      tools: [look],
      ...(isShielded && { shields: { toolInput: [mild], toolOutput: [mild] } }),
    })
    const run = agent.run('Go.')
    let isOver = false
    const turn = (): void => {
      seen.turns += 1
      stretch = 0
      onTurn(run, seen.turns)
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const result = await run.result
    isOver = true
    return { seen, result }
  }

  test.each([
    ['plain', {}],
    ['in a store', { store: memoryStore() }],
    ['all at once', { toolCalls: { concurrency: count } }],
    ['with shields', { shields: {} }],
  ])('yields to the event loop: %s', async (_, options: Partial<AgentOptions>) => {
    const { seen, result } = await inCompany(options, () => undefined)
    const looks = 'shields' in options ? 2 * count : 0
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(seen).toMatchObject({ begun: count, looks })
    expect(seen.longest).toBeLessThanOrEqual(100)
    expect(seen.turns).toBeGreaterThanOrEqual((count + looks) / 100)
  })

  test.each([
    ['its calls', {}, 3],
    ['the checks of their arguments', { shields: {} }, 3],
  ])('is cancelled between turns, in %s, and starts nothing more', async (_, options, at) => {
    const { seen, result } = await inCompany(options, (run, turn) => {
      if (turn === at) run.cancel()
    })
    expect(result.state).toBe('CANCELLED')
    expect(seen.begun + seen.looks).toBeLessThan(count / 2)
    expect(result.messages.filter(({ role }) => role === 'tool')).toHaveLength(count)
  })
})

describe('a response with very many calls', () => {
  /**
   * The state in which this many calls wait for a person. Each call counts how often the machine reads it.
   */
  async function waiting(
    count: number,
  ): Promise<{ state: SnapshotFrom<typeof agentMachine>; looks: () => number }> {
    const journal = memoryJournal()
    const theatre = await stage([calls(Array.from({ length: count }, (_, n) => ['pay', { n }]))], {
      tools: [tool('pay', () => 'paid', { needsApproval: true })],
    })
    await theatre.run('Go.', { journal }).rest()
    const state = fold(journal.entries)
    let looks = 0
    const watched = state.context.calls.map(
      (call) =>
        new Proxy(call, {
          get: (target, key) => {
            looks += 1
            return Reflect.get(target, key) as unknown
          },
        }),
    )
    return { state: { ...state, context: { ...state.context, calls: watched } }, looks: () => looks }
  }

  test.each(['in order', 'from the last'])(
    'checks each call a few times per answer, with answers %s',
    async (order) => {
      const count = 200
      const { state, looks } = await waiting(count)
      const ids = state.context.calls.map(({ id }) => id)
      if (order !== 'in order') ids.reverse()
      let reached = state
      for (const callId of ids)
        [reached] = transition(agentMachine, reached, { type: 'APPROVE', callId, now: 0 })
      expect(reached.context.calls.every(({ approved }) => approved)).toBe(true)
      expect(looks() / count / count).toBeLessThan(2)
    },
  )

  test.each([
    ['synchronously', memoryStore],
    ['asynchronously', () => distant(memoryStore())],
    ['never, because there is none', () => undefined],
  ])('is approved call by call, with a store that answers %s', async (_, open) => {
    const count = sampled(500)
    const store = open()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const theatre = await stage(
      [calls(Array.from({ length: count }, (_, n) => ['pay', { n }])), text('Done.')],
      {
        tools: [pay],
        ...(store && { store }),
      },
    )
    const play = theatre.run()
    const { pending = [] } = await play.run.result
    expect(pending).toHaveLength(count)
    for (const { callId } of pending) play.run.approve(callId)
    let result = await play.run.result
    while (result.resumable) result = await play.run.result
    expect(result.state).toBe('COMPLETED')
    expect(pay.inputs).toHaveLength(count)
  })
})
