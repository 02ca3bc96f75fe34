import { SimulatedClock } from 'xstate'
import { z } from 'zod'
import type { ModelResponse } from '../../machines/agent/model-response.js'
import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  defineTool,
  ModelError,
  type ModelProvider,
  type Run,
} from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { call, plainAnswer, settled } from '../support/manual-model.js'
import { tool } from '../support/tools.js'

type Turn = Partial<ModelResponse> | (() => Promise<Partial<ModelResponse>>)

/** Answers by the number of answers in the transcript, so that another process can continue. */
function scripted(...turns: Turn[]): ModelProvider {
  return {
    provider: 'scripted',
    model: 'scripted-1',
    request: async ({ messages }) => {
      const turn = turns[messages.filter(({ role }) => role === 'assistant').length] ?? { text: 'No more.' }
      return { ...plainAnswer, ...(typeof turn === 'function' ? await turn() : turn) }
    },
  }
}

const calls = (...toolCalls: ModelResponse['toolCalls']): Partial<ModelResponse> => ({
  toolCalls,
  finishReason: 'tool_calls',
})
const pay = tool('pay', () => 'paid', { needsApproval: true, idempotent: true })
const payThenDone = [calls(call('a', 'pay', { text: '1' })), { text: 'Done.' }]

function agentOn(store: SessionStore, turns: Turn[], options: Partial<AgentOptions> = {}) {
  return createAgent({ model: scripted(...turns), store, tools: [pay], ...options })
}

/** A store that answers in a later event loop turn, after it awaits `before`. */
function later(
  store: SessionStore,
  before: (method: keyof SessionStore) => unknown = () => null,
): SessionStore {
  const methods = ['acquire', 'renew', 'release', 'append', 'read', 'get', 'list', 'delete', 'close'] as const
  const slow = methods.map((method) => [
    method,
    async (...args: unknown[]) => {
      await before(method)
      await settled()
      return (store[method] as (...values: unknown[]) => unknown)(...args)
    },
  ])
  return Object.fromEntries(slow) as SessionStore
}

const until = async (isReached: () => boolean): Promise<void> => {
  while (!isReached()) await settled()
}

/** The time limit of a call that never ends keeps this process alive. */
async function end(run: Run): Promise<void> {
  run.cancel()
  expect((await run.result).state).toBe('CANCELLED')
}

const holderOf = async (store: SessionStore) => (await store.list())[0]?.holder

/** The first event of this type, delivered one event loop turn late. */
async function untilEvent(run: Run, type: AgentEvent['type']): Promise<void> {
  await new Promise<void>((resolve) => {
    run.events$.subscribe((event) => {
      if (event.type === type) resolve()
    })
  })
  await settled()
}

describe('a rest whose record is being written', () => {
  test('never returns the result of a rest that the run has left', async () => {
    const run = agentOn(later(memoryStore()), payThenDone).run('Go.')
    for await (const event of run) if (event.type === 'approval_requested') run.approve(event.callId)
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  test('is followed by the next rest, not the same one, when a resumed run is answered', async () => {
    const store = memoryStore()
    await agentOn(store, payThenDone).run('Go.', { session: 's' }).result
    const run = await agentOn(later(store), payThenDone).resume('s')
    expect((await run.result).state).toBe('WAITING_FOR_INPUT')
    run.approve('a')
    expect((await run.result).state).toBe('COMPLETED')
  })

  test('delays an answer that arrives while the session is released', async () => {
    let giveBack = (): void => undefined
    let isLeaving = false
    const inner = memoryStore()
    // It releases sessions on request, not together with a write.
    const plainer: SessionStore = {
      ...inner,
      append: (lease, records, summary) => inner.append(lease, records, summary),
    }
    const store = later(plainer, (method) => {
      if (method !== 'release' || isLeaving) return null
      isLeaving = true
      return new Promise<void>((resolve) => {
        giveBack = resolve
      })
    })
    const run = agentOn(store, payThenDone).run('Go.')
    await until(() => isLeaving)
    run.approve('a')
    await settled()
    giveBack()
    expect((await run.result).state).toBe('COMPLETED')
  })

  test('is followed by a new lease for an answer that arrives during the releasing write', async () => {
    let write = (): void => undefined
    const requests: string[] = []
    const store = later(memoryStore(), (method) => {
      requests.push(method)
      if (requests.filter((one) => one === 'append').length !== 2 || method !== 'append') return null
      return new Promise<void>((resolve) => {
        write = resolve
      })
    })
    const run = agentOn(store, payThenDone).run('Go.', { session: 's' })
    await until(() => run.state === 'WAITING_FOR_INPUT')
    run.approve('a')
    await settled()
    write()
    expect((await run.result).state).toBe('COMPLETED')
    expect(requests.filter((method) => method === 'acquire')).toHaveLength(2)
    expect(requests).not.toContain('release')
    expect(await holderOf(store)).toBeNull()
  })

  test('ends iteration when the session is free for the next run', async () => {
    const agent = agentOn(later(memoryStore()), [{ text: 'One.' }, { text: 'Two.' }])
    const events: AgentEvent[] = []
    for await (const event of agent.run('Go.', { session: 's' })) events.push(event)
    expect(events.at(-1)?.type).toBe('run_ended')
    expect((await agent.run('Go on.', { session: 's' }).result).output).toBe('Two.')
  })

  test.each(['acquire', 'read'] as const)(
    'a store whose %s throws any value refuses the run with a typed error',
    async (method) => {
      const fail = () => {
        // oxlint-disable-next-line no-throw-literal only-throw-error -- a custom store may throw anything
        throw 'junk'
      }
      for (const failing of [fail, async () => fail()]) {
        const store: SessionStore = { ...memoryStore(), [method]: failing }
        const refused = agentOn(store, [{ text: 'Hi.' }]).run('Go.', { session: 's' }).result
        await expect(refused).rejects.toMatchObject({
          name: 'StoreError',
          code: 'store_unavailable',
          message: expect.stringContaining('junk'),
          subject: 's',
        })
      }
    },
  )

  test.each(['read', 'get', 'inbox.put', 'inbox.read'])(
    'a store whose %s throws anything rejects the calls of an agent, typed',
    async (method) => {
      const inner = memoryStore()
      await agentOn(inner, payThenDone).run('Go.', { session: 's' }).result
      const fail = () => {
        throw new RangeError('The disk is on fire.')
      }
      for (const failing of [fail, async () => fail()]) {
        const [part, name = ''] = method.split('.')
        const store = (
          name === ''
            ? { ...inner, [method]: failing }
            : { ...inner, [part ?? '']: { ...inner.inbox, [name]: failing } }
        ) as SessionStore
        const agent = agentOn(store, payThenDone)
        const calls = [
          agent.send('s', { type: 'approve', callId: 'a' }),
          agent.replay('s'),
          agent.readSession('s'),
          agent.fork('s'),
        ]
        const errors = (await Promise.allSettled(calls)).flatMap((outcome) =>
          outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
        )
        expect(errors).not.toEqual([])
        for (const error of errors)
          expect(error).toMatchObject({
            name: 'StoreError',
            code: 'store_unavailable',
            message: expect.stringContaining('The disk is on fire.'),
          })
      }
    },
  )

  test('a store that fails at a rest is reported by the result from then on', async () => {
    const inner = memoryStore()
    const store: SessionStore = {
      ...inner,
      append: (lease, records, summary) => {
        if (records.some(({ data }) => data.includes('"REJECT"'))) throw new Error('no space left on device')
        return inner.append(lease, records, summary)
      },
    }
    const run = agentOn(store, [calls(call('a', 'pay'), call('b', 'pay')), { text: 'Done.' }]).run('Go.')
    const ends: Promise<string>[] = []
    run.events$.subscribe({
      next: (event) => {
        if (event.type === 'approval_requested' && event.callId === 'a') run.reject('a', 'No.')
      },
      complete: () => void ends.push(run.result.then(({ state }) => state)),
    })
    await until(() => ends.length > 0)
    expect(await ends[0]).toBe('ERROR')
  })

  test.each([
    ['before the run', 'acquire'],
    ['at its first write', 'append'],
  ] as const)('a store that stops answering %s blocks nothing forever', async (_, method) => {
    const clock = new SimulatedClock()
    const store: SessionStore = { ...memoryStore(), [method]: () => new Promise(() => undefined) }
    const model = scripted(() => Promise.resolve({ text: 'Never told.' }))
    const run = createAgent({ model, store, clock }).run('Go.', { session: 's' })
    let outcome: unknown = 'nothing yet'
    run.result.then(
      (result) => (outcome = result),
      (error: unknown) => (outcome = error),
    )
    await settled()
    run.cancel()
    await settled()
    expect(outcome).toBe('nothing yet')
    clock.increment(60_000)
    await settled()
    await settled()
    if (method === 'acquire') expect(outcome).toMatchObject({ name: 'StoreError', code: 'store_unavailable' })
    else expect(outcome).toMatchObject({ state: 'CANCELLED', error: { code: 'store_unavailable' } })
  })

  test('a session that cannot be written ends an interactive run, without unhandled rejections', async () => {
    const inner = memoryStore()
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const store: SessionStore = {
      ...inner,
      append: (lease, records, summary) => {
        if (summary?.state === 'WAITING_FOR_INPUT') throw new Error('no space left on device')
        return inner.append(lease, records, summary)
      },
    }
    const run = agentOn(store, [{ text: 'Hi.' }], { interactive: true }).run('Go.')
    expect(await run.result).toMatchObject({ state: 'ERROR', reason: 'store_error' })
    await settled()
    await settled()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
})

describe('a session is released', () => {
  test('when a listener cancels at the moment of the rest', async () => {
    const store = memoryStore()
    const run = agentOn(store, payThenDone).run('Go.', { session: 's' })
    run.events$.subscribe((event) => {
      if (event.type === 'approval_requested') run.cancel()
    })
    await until(() => run.state === 'CANCELLED')
    await settled()
    expect(store.list()).toMatchObject([{ holder: null, summary: { state: 'CANCELLED' } }])
  })

  test('when a waiting run is resumed with an aborted signal', async () => {
    const store = memoryStore()
    await agentOn(store, payThenDone).run('Go.', { session: 's' }).result
    const run = await agentOn(store, payThenDone).resume('s', { signal: AbortSignal.abort() })
    await until(() => run.state === 'CANCELLED')
    await settled()
    expect(store.list()).toMatchObject([{ holder: null, summary: { state: 'CANCELLED' } }])
  })

  test('when the signal of a resumed run aborts; the signal of the previous handle no longer applies', async () => {
    const store = memoryStore()
    const [before, now] = [new AbortController(), new AbortController()]
    let requestCount = 0
    const turns = [
      ...payThenDone.slice(0, 1),
      () => {
        requestCount += 1
        return new Promise<never>(() => undefined)
      },
    ]
    await agentOn(store, turns).run('Go.', { session: 's', signal: before.signal }).result
    const run = await agentOn(store, turns).resume('s', { signal: now.signal })
    run.approve('a')
    await until(() => requestCount === 1)
    before.abort()
    await settled()
    expect(run.state).toBe('RUNNING')
    now.abort()
    await until(() => run.state === 'CANCELLED')
    await settled()
    expect(requestCount).toBe(1)
    expect(store.list()).toMatchObject([{ holder: null, summary: { state: 'CANCELLED' } }])
  })

  test('when a resumed run is paused before its back-off starts', async () => {
    const store = memoryStore()
    const clock = new SimulatedClock()
    const failing = scripted(() =>
      Promise.reject(
        new ModelError({
          kind: 'transient',
          code: 'http_503',
          message: 'Overloaded.',
          status: 503,
          retryAfterMs: 60_000,
          partialText: '',
          usage: null,
        }),
      ),
    )
    const agent = createAgent({ model: failing, store, clock })
    await untilEvent(agent.run('Go.', { session: 's' }), 'retry')
    const forked = await agent.fork('s')
    const run = await agent.resume(forked)
    run.pause()
    expect((await run.result).state).toBe('PAUSED')
    await settled()
    await settled()
    expect(store.list().find(({ id }) => id === forked)?.holder).toBeNull()
  })

  test('when a message to a run cannot be written: the run ends with a typed error', async () => {
    const inner = memoryStore()
    const store: SessionStore = {
      ...inner,
      append: (lease, records, summary) => {
        if (records.some(({ data }) => data.includes('xstate.done.actor.model'))) throw new TypeError('No.')
        return inner.append(lease, records, summary)
      },
    }
    const run = agentOn(store, payThenDone).run('Go.', { session: 's' })
    expect(await run.result).toMatchObject({ state: 'ERROR', reason: 'store_error' })
    expect(await holderOf(inner)).toBeNull()
  })

  test('provider data that JSON cannot represent is omitted, and everything can be written', async () => {
    const store = memoryStore()
    const odd = { ...call('a', 'pay'), extra_content: 5n } as never
    const { result } = agentOn(store, [calls(odd), { text: 'Done.' }]).run('Go.', { session: 's' })
    expect(await result).toMatchObject({ state: 'WAITING_FOR_INPUT', pending: [{ callId: 'a' }] })
  })
})

describe('a session that was deleted at a rest and created again under its id', () => {
  const turns = [calls(call('a', 'pay', { text: '1' })), { text: 'Done.' }]

  test.each([
    ['synchronously', () => memoryStore()],
    ['asynchronously', () => later(memoryStore())],
  ])('refuses an answer of the old handle, with a store that answers %s', async (_, open) => {
    const store = open()
    const old = agentOn(store, turns).run('Pay Ann.', { session: 's' })
    expect((await old.result).state).toBe('WAITING_FOR_INPUT')
    await store.delete('s')
    const fresh = agentOn(store, turns).run('Pay Bob.', { session: 's' })
    expect((await fresh.result).state).toBe('WAITING_FOR_INPUT')
    old.approve('a')
    expect(await old.result).toMatchObject({
      state: 'ERROR',
      reason: 'store_error',
      error: { code: 'out_of_order', message: expect.stringContaining('deleted') as string },
    })
    fresh.approve('a')
    const result = await fresh.result
    expect(result.state).toBe('COMPLETED')
    expect(result.messages[0]).toMatchObject({ content: 'Pay Bob.' })
    expect((await agentOn(store, turns).replay('s')).run).toEqual(result)
  })

  test('also refuses it if it was only deleted', async () => {
    const store = memoryStore()
    const old = agentOn(store, turns).run('Pay Ann.', { session: 's' })
    await old.result
    store.delete('s')
    old.approve('a')
    expect(await old.result).toMatchObject({ state: 'ERROR', reason: 'store_error' })
    expect(store.list()).toEqual([])
  })
})

describe('a call that was running when the process died', () => {
  const once = { readOnly: false, idempotent: true }

  test.each([
    ['is repeated if both programs allow it', once, once, 2],
    ['is not repeated if the continuing program forbids it', once, { idempotent: false }, 1],
    ['is not repeated if the starting program forbade it', { idempotent: false }, once, 1],
  ])('%s', async (_, before, after, times) => {
    let runs = 0
    const work = (traits: typeof before) =>
      tool('work', () => (++runs === 1 ? new Promise(() => undefined) : 'worked'), traits)
    const store = memoryStore()
    const turns = [calls(call('w', 'work')), { text: 'Done.' }]
    const dying = agentOn(store, turns, { tools: [work(before)] })
    const abandoned = dying.run('Go.', { session: 's' })
    await until(() => runs === 1)
    const left = await dying.fork('s')
    const result = await (await agentOn(store, turns, { tools: [work(after)] }).resume(left)).result
    expect([result.state, runs]).toEqual(['COMPLETED', times])
    expect(result.messages[2]?.content).toMatch(times === 2 ? /worked/ : /Its outcome is unknown/)
    expect((await dying.replay(left)).run).toEqual(result)
    await end(abandoned)
  })

  test('is not repeated either if the resuming program has no such tool', async () => {
    let runs = 0
    const store = memoryStore()
    const turns = [calls(call('w', 'work')), { text: 'Done.' }]
    const work = tool('work', () => new Promise(() => (runs += 1)), once)
    const dying = agentOn(store, turns, { tools: [work] })
    const abandoned = dying.run('Go.', { session: 's' })
    await until(() => runs === 1)
    const result = await (await agentOn(store, turns).resume(await dying.fork('s'))).result
    expect(result.messages[2]?.content).toMatch(/Its outcome is unknown/)
    await end(abandoned)
  })
})

describe('the lease', () => {
  const holding = (how: (inner: SessionStore) => Partial<SessionStore>) => {
    const clock = new SimulatedClock()
    const inner = memoryStore({ now: () => clock.now() })
    const store: SessionStore = { ...inner, ...how(inner) }
    let finish = (): void => undefined
    const wait = defineTool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      execute: () =>
        new Promise<string>((resolve) => {
          finish = () => {
            resolve('waited')
          }
        }),
    })
    const turns = [calls(call('w', 'wait'), call('a', 'pay', { text: '1' })), { text: 'Done.' }]
    const run = agentOn(store, turns, { clock, tools: [wait, pay] }).run('Go.', { session: 's' })
    return { clock, run, finish: () => finish() }
  }

  test('survives one failed renewal while it lasts', async () => {
    let renewals = 0
    const { clock, run, finish } = holding((inner) => ({
      renew: (lease, ttlMs) => {
        if ((renewals += 1) === 1) throw new Error('connection reset')
        return inner.renew(lease, ttlMs)
      },
    }))
    await until(() => run.state === 'WAITING_FOR_TOOL')
    await settled()
    clock.increment(10_001)
    await settled()
    finish()
    expect((await run.result).state).toBe('WAITING_FOR_INPUT')
    expect(renewals).toBe(1)
  })

  test('ignores a renewal that comes after the release', async () => {
    let renew = (): void => undefined
    const { clock, run, finish } = holding((inner) => ({
      renew: async (lease, ttlMs) => {
        await new Promise<void>((resolve) => {
          renew = resolve
        })
        return inner.renew(lease, ttlMs)
      },
    }))
    await until(() => run.state === 'WAITING_FOR_TOOL')
    await settled()
    clock.increment(10_001)
    finish()
    await run.result
    renew()
    await settled()
    expect(run.state).toBe('WAITING_FOR_INPUT')
    run.approve('a')
    expect((await run.result).state).toBe('COMPLETED')
  })
})

test('cancelling a run that another process continued ends this handle in CANCELLED', async () => {
  const store = memoryStore()
  const run = agentOn(store, payThenDone).run('Go.', { session: 's' })
  await run.result
  const other = await agentOn(store, payThenDone).resume('s')
  other.approve('a')
  expect((await other.result).state).toBe('COMPLETED')
  run.cancel()
  expect(await run.result).toMatchObject({ state: 'CANCELLED', error: { code: 'out_of_order' } })
})

describe('a process that dies after any record', () => {
  const text = 'half a pair \ud800, NUL \u0000, 😀'.repeat(3_000)
  const turns = [
    { text, ...calls(call('r', 'read'), call('a', 'pay', { text })) },
    { text, finishReason: 'length' },
    calls(call('s', 'read')),
    { text: 'Done.' },
  ] satisfies Turn[]
  const options = (reads: string[]): Partial<AgentOptions> => ({
    tools: [
      pay,
      defineTool({
        name: 'read',
        description: 'Reads.',
        input: z.object({}),
        readOnly: true,
        execute: (_input, { callId }) => {
          reads.push(callId)
          return text
        },
      }),
    ],
    clock: new SimulatedClock(),
    prices: { 'scripted-1': { inputPerMillion: 1, outputPerMillion: 2 } },
  })
  const carryOn = async (run: Run) => {
    let result = await run.result
    for (; result.state === 'WAITING_FOR_INPUT'; result = await run.result) run.approve('a')
    return result
  }

  test('the next process reaches the same end at the same cost, and repeats no finished call', async () => {
    const store = memoryStore()
    const agent = agentOn(store, turns, options([]))
    const done = await carryOn(agent.run(text, { session: 's' }))
    expect(done).toMatchObject({ state: 'COMPLETED', usage: { totalTokens: 60 } })
    const records = store.read('s')
    expect(records.filter(({ type }) => type === 'snapshot').length).toBeGreaterThan(1)

    for (const { seq } of records.slice(1)) {
      const copy = memoryStore()
      const lease = copy.acquire('s', { holder: 'a copy', ttlMs: 1_000 })
      copy.append(lease, records.slice(0, seq))
      copy.release(lease)
      const reads: string[] = []
      const again = agentOn(seq % 2 ? later(copy) : copy, turns, options(reads))
      const finished = ((await again.replay('s')).run?.messages ?? [])
        .filter(({ role }) => role === 'tool')
        .map((message) => (message.role === 'tool' ? message.tool_call_id : ''))
      const result = await carryOn(await again.resume('s'))
      expect(result.usage).toEqual(done.usage)
      expect(result.messages.map(({ role, content }) => [role, content])).toEqual(
        done.messages.map(({ role, content }) => [role, content]),
      )
      expect(reads.filter((id) => finished.includes(id))).toEqual([])
      expect(await holderOf(copy)).toBeNull()
    }
  })

  test('a replay up to each record equals the live machine at that record, byte for byte', async () => {
    const store = memoryStore()
    const live: unknown[] = []
    const agent = agentOn(store, turns, {
      ...options([]),
      inspect: (event) => {
        if (event.type !== '@xstate.snapshot' || event.event.type === 'xstate.init') return
        if ('context' in event.snapshot) live.push(event.snapshot.context)
      },
    })
    await carryOn(agent.run(text, { session: 's' }))
    const events = store.read('s').filter(({ type }) => type === 'event')
    const replayed = await Promise.all(events.map(({ seq }) => agent.replay('s', { to: seq })))
    expect(replayed.map(({ snapshot }) => snapshot?.context)).toStrictEqual(live)
  })
})
