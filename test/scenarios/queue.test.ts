import { checkSessionLog } from '../../src/testing/index.js'
import { SimulatedClock } from 'xstate'
import fc from 'fast-check'
import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  memoryStore,
  patternShield,
  runSession,
  StoreError,
  UsageError,
  type UserInput,
} from '../../src/index.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'
import { sampled, sampledKinds } from '../support/extent.js'

const kinds: [string, () => SessionStore][] = [
  ['synchronously', memoryStore],
  ['asynchronously', () => distant(memoryStore())],
]

async function refused(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof UsageError || error instanceof StoreError) return error.code
  throw new Error(`It was not refused: ${String(error)}`)
}

/** The user messages and answers of a session. */
async function transcript(agent: ReturnType<typeof createAgent>, id = 's'): Promise<unknown[]> {
  const { messages } = await agent.replay(id)
  return messages.filter(({ role }) => role !== 'system').map(({ content }) => content)
}

const textOf = (content: unknown): string => (typeof content === 'string' ? content : JSON.stringify(content))

const inboxOf = async (store: SessionStore, id = 's') => (await store.inbox?.read(id)) ?? []

/** An agent whose model echoes each message, unless the test holds it. */
function echo(store: SessionStore, options: Partial<Parameters<typeof createAgent>[0]> = {}) {
  const model = new ManualModel()
  const agent = createAgent({ model, store, clock: new SimulatedClock(), ...options })
  let isHeld = false
  const pump = async (): Promise<void> => {
    // oxlint-disable-next-line no-unmodified-loop-condition -- modified when the work is done
    while (!isHeld) {
      const last = model.pending?.request.messages.at(-1)
      if (model.pending) model.pending.answer({ text: `re: ${textOf(last?.content)}` })
      await settled()
    }
  }
  return {
    agent,
    model,
    next: (input: UserInput, messageId?: string) =>
      agent.send('s', {
        type: 'message',
        when: 'next',
        input,
        ...(messageId !== undefined && { messageId }),
      }),
    answering: async <Value>(work: Promise<Value>): Promise<Value> => {
      isHeld = false
      void pump()
      try {
        return await work
      } finally {
        isHeld = true
      }
    },
  }
}

describe.each(sampledKinds(kinds))('a queue in a store that answers %s', (_, open) => {
  it('delivers messages that were queued during a run, in order, one run per message', async () => {
    const store = open()
    const { agent, model, next, answering } = echo(store)
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    expect(await next('two')).toEqual({ message: 1, status: 'sent' })
    expect(await next([{ content: 'three', clientId: 'page-3' }])).toEqual({ message: 2, status: 'sent' })
    const rest = await answering(driven)
    expect(rest).toMatchObject({ turn: 3, state: 'COMPLETED', output: 're: three' })
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two', 'three', 're: three'])
    await settled()
    expect(await inboxOf(store)).toEqual([])
    const starts = (await store.read('s')).filter(({ type }) => type === 'start')
    expect(starts.map(({ data }) => (JSON.parse(data) as { queued?: number }).queued)).toEqual([
      undefined,
      1,
      2,
    ])
    const texts = (await agent.replay('s')).messages.filter(({ role }) => role === 'user')
    expect(texts.at(-1)?.data).toMatchObject({ clientId: 'page-3' })
  })

  it('leaves queued messages to the next call when it is stopped', async () => {
    const store = open()
    const stop = new AbortController()
    const inspect: AgentOptions['inspect'] = (seen) => {
      if (seen.type === '@xstate.event' && seen.event.type === 'xstate.done.actor.model') stop.abort()
    }
    const { agent, model, next, answering } = echo(store, { inspect })
    const driven = runSession(agent, { session: 's', input: 'one', signal: stop.signal })
    await until(() => model.pending !== null)
    await next('two')
    expect(await answering(driven)).toMatchObject({ turn: 1, stopped: true })
    expect(await answering(runSession(agent, { session: 's' }))).toMatchObject({ turn: 2 })
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two'])
  })

  it('keeps messages that are queued after the run has ended, for the next call', async () => {
    const store = open()
    const { agent, next, answering } = echo(store)
    await answering(runSession(agent, { session: 's', input: 'one' }))
    expect(await next('two')).toMatchObject({ status: 'waiting' })
    expect(await answering(runSession(agent, { session: 's' }))).toMatchObject({ turn: 2, output: 're: two' })
    expect(await answering(runSession(agent, { session: 's' }))).toMatchObject({ turn: 2, output: 're: two' })
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two'])
  })

  it('starts nothing after a stop, until another turn is requested', async () => {
    const store = open()
    const { agent, model, next, answering } = echo(store)
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    await next('two')
    await next('three')
    await agent.send('s', { type: 'cancel' })
    expect(await driven).toMatchObject({ turn: 1, state: 'CANCELLED' })
    expect(await runSession(agent, { session: 's' })).toMatchObject({ turn: 1, state: 'CANCELLED' })
    expect(await inboxOf(store)).toHaveLength(2)
    const rest = await answering(runSession(agent, { session: 's', turn: 2 }))
    expect(rest).toMatchObject({ turn: 3, output: 're: three' })
    expect(await refused(runSession(agent, { session: 's', turn: 4 }))).toBe('not_begun')
  })

  it('keeps messages through a cancel of a session without a process', async () => {
    const store = open()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { agent, model, next, answering } = echo(store, { tools: [pay] })
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    model.pending?.answer({ toolCalls: [call('a', 'pay', {})] })
    expect(await driven).toMatchObject({ state: 'WAITING_FOR_INPUT' })
    expect(await next('two')).toMatchObject({ status: 'waiting' })
    expect(await runSession(agent, { session: 's' })).toMatchObject({ state: 'WAITING_FOR_INPUT', turn: 1 })
    expect(await agent.send('s', { type: 'cancel' })).toMatchObject({ status: 'applied' })
    expect(await inboxOf(store)).toHaveLength(1)
    expect(await answering(runSession(agent, { session: 's', turn: 2 }))).toMatchObject({ output: 're: two' })
  })

  it('waits while an approval waits, and continues after the run that continues it', async () => {
    const store = open()
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { agent, model, next, answering } = echo(store, { tools: [pay] })
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    await next('two')
    model.pending?.answer({ toolCalls: [call('a', 'pay', {})] })
    const { head } = await driven
    const answers = [{ type: 'approve', callId: 'a' }] as const
    const rest = await answering(runSession(agent, { session: 's', answers, at: head }))
    expect(rest).toMatchObject({ turn: 2, output: 're: two' })
  })

  it('waits while the run is paused', async () => {
    const store = open()
    const { agent, model, next, answering } = echo(store, { tools: [tool('look')] })
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    await agent.send('s', { type: 'pause' })
    await next('two')
    await settled()
    model.pending?.answer({ toolCalls: [call('a', 'look')] })
    expect(await driven).toMatchObject({ turn: 1, state: 'PAUSED' })
    expect(await inboxOf(store)).toHaveLength(1)
    const answers = [{ type: 'resume' }] as const
    expect(await answering(runSession(agent, { session: 's', answers }))).toMatchObject({ turn: 2 })
  })

  it('is not started by agent.run, and its turns count', async () => {
    const store = open()
    const { agent, next, answering } = echo(store)
    await answering(agent.run('one', { session: 's' }).result)
    await next('two')
    await answering(agent.run('three', { session: 's' }).result)
    expect(await inboxOf(store)).toHaveLength(1)
    expect(await answering(runSession(agent, { session: 's' }))).toMatchObject({ turn: 3, output: 're: two' })
    const late = runSession(agent, { session: 's', turn: 3, input: 'too late' })
    expect(await answering(late)).toMatchObject({ turn: 3, output: 're: two' })
  })

  it('delivers a message once if it is queued again, before or after delivery', async () => {
    const store = open()
    const { agent, model, next, answering } = echo(store)
    const driven = runSession(agent, { session: 's', input: [{ content: 'one', clientId: 'a' }] })
    await until(() => model.pending !== null)
    expect(await next('one', 'a')).toMatchObject({ status: 'applied' })
    expect(await next('two', 'b')).toEqual({ message: 1, status: 'sent' })
    expect(await next('two', 'b')).toEqual({ message: 1, status: 'sent' })
    // Two processes released it at the same time.
    await store.inbox?.put('s', (await inboxOf(store))[0]?.text ?? '')
    await answering(driven)
    expect(await next('two', 'b')).toMatchObject({ status: 'applied' })
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two'])
    await settled()
    expect(await answering(runSession(agent, { session: 's' }))).toMatchObject({ turn: 2 })
    await settled()
    expect(await inboxOf(store)).toEqual([])
  })

  it('does not deliver a message again if the process died before it removed the message', async () => {
    const store = open()
    const { agent, next, answering } = echo(store)
    await answering(runSession(agent, { session: 's', input: 'one' }))
    await next('two')
    const remove = store.inbox?.remove.bind(store.inbox)
    Object.assign(store.inbox ?? {}, { remove: () => undefined })
    await answering(runSession(agent, { session: 's' }))
    await settled()
    expect(await inboxOf(store)).toHaveLength(1)
    Object.assign(store.inbox ?? {}, { remove })
    expect(await answering(runSession(agent, { session: 's' }))).toMatchObject({ turn: 2 })
    await settled()
    expect(await inboxOf(store)).toEqual([])
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two'])
  })

  it('accepts 100 messages of 10 MB, and refuses more', async () => {
    const store = open()
    const { agent, model, next } = echo(store)
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    expect(await refused(next('x'.repeat(10_000_001)))).toBe('queue_full')
    for (let i = 0; i < 100; i += 1) await next(`${i}`)
    expect(await refused(next('one too many'))).toBe('queue_full')
    await agent.send('s', { type: 'cancel' })
    await driven
  })

  it('steers the active run with a message for now', async () => {
    const store = open()
    const { agent, model, answering } = echo(store, { tools: [tool('look')] })
    const driven = runSession(agent, { session: 's', input: 'one' })
    await until(() => model.pending !== null)
    const now = { type: 'message', when: 'now', input: 'Mind the gap.', messageId: 'k' } as const
    expect(await agent.send('s', now)).toMatchObject({ status: 'sent' })
    await settled()
    await agent.send('s', now)
    model.pending?.answer({ toolCalls: [call('a', 'look')] })
    expect(await answering(driven)).toMatchObject({ turn: 1, state: 'COMPLETED' })
    const { messages } = await agent.replay('s')
    expect(messages.filter(({ content }) => content === 'Mind the gap.')).toHaveLength(1)
    expect(await agent.send('s', now)).toMatchObject({ status: 'applied' })
    expect(await refused(agent.send('s', { ...now, messageId: 'other' }))).toBe('run_ended')
  })

  it('keeps a message for now that the model had not received when the run ended, with its author', async () => {
    const store = open()
    const { agent, model, answering, next } = echo(store)
    const driven = agent.run('one', { session: 's', by: 'ann' })
    await until(() => model.pending !== null)
    const now = { type: 'message', when: 'now', input: 'two', messageId: 'k', by: 'bob' } as const
    await agent.send('s', now)
    await settled()
    await agent.send('s', { type: 'cancel' })
    await driven.result
    await next('three')
    await answering(runSession(agent, { session: 's', turn: 2 }))
    expect(await transcript(agent)).toEqual(['one', 'two', 'three', 're: three'])
    const { snapshot } = await agent.replay('s')
    expect(snapshot).toMatchObject({ context: { steering: [] } })
    const third = agent.run('four', { session: 's', by: 'cyd' })
    await answering(third.result)
    expect(third.snapshot()).toMatchObject({ context: { requesters: [{ id: 'cyd' }] } })
    expect(await transcript(agent)).toEqual(['one', 'two', 'three', 're: three', 'four', 're: four'])
  })

  it('counts the author of a message that the model had not received among those of the next run', async () => {
    const { agent, model, answering } = echo(open())
    const first = agent.run('one', { session: 's', by: 'ann' })
    await until(() => model.pending !== null)
    first.steer('two', { by: 'bob' })
    first.cancel()
    await first.result
    const second = agent.run('three', { session: 's', by: 'cyd' })
    await answering(second.result)
    expect(second.snapshot()).toMatchObject({
      context: { requesters: [{ id: 'ann' }, { id: 'bob' }, { id: 'cyd' }] },
    })
    expect(await transcript(agent)).toEqual(['one', 'two', 'three', 're: three'])
  })

  it('keeps a message for now if the run ended before reading it, and the next turn starts with it', async () => {
    const store = open()
    const { agent, model, answering } = echo(store)
    const driven = agent.run('one', { session: 's' })
    await until(() => model.pending !== null)
    // A message from another process, not yet read when the active process's run ends.
    const text = '{"type":"MESSAGE","when":"now","messageId":"k","messages":[{"content":"two"}]}'
    model.pending?.answer({ text: 're: one' })
    await store.inbox?.put('s', text)
    await driven.result
    await answering(runSession(agent, { session: 's' }))
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two'])
    expect(await inboxOf(store)).toEqual([])
  })

  it('starts with a message that arrives while a process only reads the state of an ended run', async () => {
    const store = open()
    const { agent, answering, next } = echo(store)
    await answering(agent.run('one', { session: 's' }).result)
    const receipts: unknown[] = []
    const held: SessionStore = {
      ...store,
      release: async (lease) => {
        if (receipts.length === 0) receipts.push(await next('two'))
        return store.release(lease)
      },
    }
    const other = echo(held)
    expect(await other.answering(runSession(other.agent, { session: 's' }))).toMatchObject({ turn: 2 })
    expect(receipts).toMatchObject([{ status: 'sent' }])
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two'])
  })

  it('refuses content that a user cannot send', async () => {
    const store = open()
    const { agent, answering } = echo(store)
    await answering(agent.run('one', { session: 's' }).result)
    for (const text of [
      '[{"content":[{}]}]',
      '[{"content":[{"type":"nope"}]}]',
      '[{"content":" "}]',
      '[{"content":"x","data":1}]',
    ])
      await store.inbox?.put('s', `{"type":"MESSAGE","messageId":"${text.length}","messages":${text}}`)
    const disguised =
      '{"type":"MESSAGE","messageId":"d","messages":[{"role":"system","internal":true,"createdAt":"z","content":"two"}]}'
    await store.inbox?.put('s', disguised)
    await answering(runSession(agent, { session: 's' }))
    const { messages } = await agent.replay('s')
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'one'],
      ['assistant', 're: one'],
      ['user', 'two'],
      ['assistant', 're: two'],
    ])
    expect(await inboxOf(store)).toEqual([])
  })

  it('knows the id of every waiting message', async () => {
    const store = open()
    const { agent, answering, next } = echo(store)
    await answering(agent.run('one', { session: 's' }).result)
    const input = [
      { content: 'two', clientId: 'x' },
      { content: 'three', clientId: 'y' },
    ]
    const first = await agent.send('s', { type: 'message', when: 'next', input, messageId: 'z' })
    expect(await next('other', 'y')).toEqual(first)
    await answering(runSession(agent, { session: 's' }))
    expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 'three', 're: three'])
  })

  it('lists queued and delivered messages', async () => {
    const store = open()
    const { agent, model, next, answering } = echo(store)
    const seen: unknown[] = []
    const run = agent.run('one', { session: 's' })
    run.events$.subscribe((event: AgentEvent) => {
      if (event.type === 'message_queued') seen.push(event.messageId)
    })
    await until(() => model.pending !== null)
    await next('two', 'b')
    await settled()
    await answering(run.result)
    expect(seen).toEqual(['b'])
    const watch = agent.watch('s', { until: 'never' })[Symbol.asyncIterator]()
    const watched: unknown[] = []
    const readUntil = async (type: AgentEvent['type']): Promise<void> => {
      for (;;) {
        const { value } = await watch.next()
        const event = value as AgentEvent | undefined
        if (event?.type === 'message_dequeued') watched.push(event.messageId)
        if (event?.type === type) return
      }
    }
    await readUntil('run_ended')
    await answering(Promise.all([runSession(agent, { session: 's' }), readUntil('message_dequeued')]))
    expect(watched).toEqual(['b'])
  })
})

it('starts nothing after a run that has ended its processes', async () => {
  let time = 0
  const store = memoryStore({ now: () => time })
  const { agent, model, next, answering } = echo(store)
  for (let i = 0; i < 6; i += 1) {
    // It sends no more events, and its lease expires.
    void runSession(agent, { session: 's', input: 'one' }).catch(() => undefined)
    await until(() => model.pending !== null)
    if (i === 0) await next('two')
    model.pending = null
    time += 60_000
  }
  const rest = await runSession(agent, { session: 's' })
  expect(rest).toMatchObject({ turn: 1, state: 'ERROR', error: { code: 'poisoned' } })
  // Earlier processes had clocks that ran ahead. Recorded time never goes backwards.
  expect(checkSessionLog(store.read('s'))).toBeNull()
  expect(await inboxOf(store)).toHaveLength(1)
  expect(await runSession(agent, { session: 's' })).toMatchObject({ turn: 1, state: 'ERROR' })
  const last = await answering(runSession(agent, { session: 's', turn: 2 }))
  expect(last).toMatchObject({ turn: 2, output: 're: two' })
})

it('refuses invalid messages', async () => {
  const store = memoryStore()
  const { agent, model, next, answering } = echo(store)
  expect(await refused(next('one'))).toBe('unknown_session')
  await answering(runSession(agent, { session: 's', input: 'one' }))
  const tell = (message: object) => refused(agent.send('s', message as never))
  expect(await tell({ type: 'message', input: 'x' })).toBe('invalid_input')
  expect(await tell({ type: 'message', when: 'later', input: 'x' })).toBe('invalid_input')
  expect(await tell({ type: 'message', when: 'next', input: ' ' })).toBe('invalid_input')
  expect(await tell({ type: 'message', when: 'next', input: 'x', messageId: '' })).toBe('invalid_input')
  const picture = [{ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }]
  expect(await tell({ type: 'message', when: 'now', input: picture })).toBe('invalid_input')
  expect(model.pending).toBeNull()
})

it('refuses a turn in the session of a sub-agent', async () => {
  const store = memoryStore()
  const { next, answering, agent } = echo(store)
  await answering(agent.run('one', { session: 's' }).result)
  const { get } = store
  store.get = (id) => {
    const listed = get(id)
    return listed && { ...listed, summary: listed.summary && { ...listed.summary, parent: 'top' } }
  }
  expect(await refused(next('two'))).toBe('sub_agent_session')
})

it('refuses a message to an interactive run, which accepts replies', async () => {
  const store = memoryStore()
  const { agent, next, answering } = echo(store, { interactive: true })
  await answering(agent.run('one', { session: 's' }).result)
  expect(await refused(next('two'))).toBe('interactive_run')
})

it('skips a damaged queued message, and delivers the others', async () => {
  const store = memoryStore()
  const { agent, next, answering } = echo(store)
  await answering(runSession(agent, { session: 's', input: 'one' }))
  await next('two')
  const damaged = [
    '{"type":"MESSAGE",',
    '{"type":"MESSAGE","messageId":5}',
    '{"type":"MESSAGE","messageId":"x","messages":[{"content":7}]}',
  ]
  for (const text of damaged) store.inbox?.put('s', text)
  await next('three')
  await answering(runSession(agent, { session: 's' }))
  expect(await transcript(agent)).toEqual(['one', 're: one', 'two', 're: two', 'three', 're: three'])
  await settled()
  expect(await inboxOf(store)).toEqual([])
})

it('screens a queued message when it is delivered', async () => {
  const store = memoryStore()
  const shield = patternShield({ patterns: [/secret/], action: 'redact' })
  const { agent, model, next, answering } = echo(store, { shields: { input: [shield] } })
  const driven = runSession(agent, { session: 's', input: 'one' })
  await until(() => model.pending !== null)
  await next('the secret')
  await answering(driven)
  expect(JSON.stringify(model.attempts.map(({ request }) => request.messages))).not.toContain('secret')
})

it('delivers every message once and in order, for any interleaving', async () => {
  const step = fc.constantFrom('send', 'repeat', 'drive', 'stop', 'ask')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const store = memoryStore()
      const { agent, next, answering } = echo(store)
      await answering(runSession(agent, { session: 's', input: 'start' }))
      const texts: string[] = []
      for (const each of steps) {
        const { run } = await agent.replay('s')
        if (each === 'send') await next(`m${texts.push(`m${texts.length}`) - 1}`, `m${texts.length - 1}`)
        else if (each === 'repeat' && texts.length > 0) {
          const last = texts.at(-1) as string
          await next(last, last)
          await expect(next('again', last)).rejects.toMatchObject({ code: 'message_changed' })
        } else if (each === 'drive') await answering(runSession(agent, { session: 's' }))
        else if (each === 'stop') await agent.send('s', { type: 'cancel' }).catch(() => undefined)
        else if (each === 'ask' && run) await answering(agent.run('asked', { session: 's' }).result)
      }
      const { run } = await agent.replay('s')
      await answering(runSession(agent, { session: 's' }))
      expect(run?.state).toBe('COMPLETED')
      const { messages } = await agent.replay('s')
      const contents = messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))
      expect(contents.filter((text) => /^m\d/.test(textOf(text)))).toEqual(texts)
      expect(await inboxOf(store)).toEqual([])
    }),
    { numRuns: sampled(40) },
  )
})
