import { createActor, toPromise } from 'xstate'
import {
  type AgentContext,
  createSession,
  defineGuard,
  type GuardFact,
  type GuardVerdict,
  memoryJournal,
  type UserGuard,
} from '../../src/index.js'
import { fold } from '../support/fold.js'
import { latch, type Play, played, stage, textOf } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

const done = text('Done.')

/** A guard that returns a fixed verdict on calls or results. */
function saying(on: GuardFact['type'], verdict: GuardVerdict, more: Partial<UserGuard> = {}): UserGuard {
  return defineGuard({
    ...more,
    name: 'mine',
    verdict: (_, { fact }) => (fact.type === on ? verdict : undefined),
  })
}

/** A guard that counts batches and halts above the limit. */
function counting(name: string, most: number, more: Partial<UserGuard> = {}): UserGuard {
  return defineGuard({
    ...more,
    name,
    initial: { batches: 0 },
    observe: (state, fact) => (fact.type === 'calls' ? { batches: state.batches + 1 } : state),
    verdict: ({ batches }) => (batches > most ? { action: 'halt', message: 'Too many.' } : undefined),
  })
}

function boom(): never {
  throw new Error('boom')
}

/** A guard that records the facts it receives. */
function listening(): { guard: UserGuard; facts: GuardFact[] } {
  const facts: GuardFact[] = []
  const guard = defineGuard({
    name: 'listener',
    verdict: (_, { fact }) => {
      facts.push(fact)
      return true
    },
  })
  return { guard, facts }
}

function rememberedBy(play: Pick<Play, 'run'>): unknown {
  return (play.run.snapshot() as { context: AgentContext }).context.guardrails.user
}

/** A run whose guard has a pending question. */
async function waiting(on: GuardFact['type'], options: Parameters<typeof stage>[1] = {}) {
  const called = latch()
  const answer = latch()
  let signal: AbortSignal | undefined
  const guard = defineGuard({
    name: 'slow',
    timeoutMs: 60_000,
    verdict: async (_, question) => {
      if (question.fact.type !== on) return
      signal = question.signal
      called.open()
      await answer.opened
    },
  })
  const look = tool('look')
  const theatre = await stage([call('look'), done], { tools: [look], guards: [guard], ...options })
  const play = theatre.run()
  await called.opened
  return { theatre, play, look, answer, isAborted: () => signal?.aborted }
}

describe('a custom guard', () => {
  it('receives the calls with their arguments and their results, as frozen plain JSON', async () => {
    const { guard, facts } = listening()
    const tools = [
      tool('look', () => ({ seen: 1 }), { readOnly: true }),
      tool('wait', undefined, { polling: true }),
    ]
    const called = calls([
      ['look', { at: { x: [1] } }],
      ['wait', ''],
      ['nowhere', {}],
      ['look', '{ no json'],
    ])
    const { result } = await played([called, done], { tools, guards: [guard] })
    expect(result.state).toBe('COMPLETED')
    const ids =
      result.messages[1]?.role === 'assistant' ? result.messages[1].tool_calls?.map(({ id }) => id) : []
    const seen = [
      {
        name: 'look',
        arguments: { at: { x: [1] } },
        argumentsText: '{"at":{"x":[1]}}',
        readOnly: true,
        polling: false,
      },
      { name: 'wait', arguments: {}, argumentsText: '{}', readOnly: false, polling: true },
      { name: 'nowhere', arguments: {}, argumentsText: '{}', readOnly: false, polling: false },
      { name: 'look', arguments: null, argumentsText: '{ no json', readOnly: true, polling: false },
    ].map((fact, i) => ({ id: ids?.[i], ...fact }))
    expect(facts).toEqual([
      { type: 'calls', calls: seen },
      {
        type: 'results',
        results: [
          { ...seen[0], status: 'ok', content: '{"seen":1}', errorKind: null },
          { ...seen[1], status: 'ok', content: 'ok', errorKind: null },
          { ...seen[2], status: 'unknown_tool', content: expect.any(String), errorKind: null },
          { ...seen[3], status: 'invalid_arguments', content: expect.any(String), errorKind: null },
        ],
      },
    ])
    expect(JSON.parse(JSON.stringify(facts))).toEqual(facts)
    const [first] = facts
    expect(Object.isFrozen(first?.type === 'calls' && first.calls[0]?.arguments)).toBe(true)
  })

  it('refuses some calls of a batch: they do not run, and the model reads why', async () => {
    const write = tool('write')
    const inside = defineGuard({
      name: 'inside',
      verdict: (_, { fact }) => {
        if (fact.type !== 'calls') return undefined
        const outside = fact.calls.filter((one) => !JSON.stringify(one.arguments).includes('/out/'))
        return { action: 'block', callIds: outside.map(({ id }) => id), message: 'Write inside /out only.' }
      },
    })
    const turn = calls([
      ['write', { path: '/out/a' }],
      ['write', { path: '/etc/passwd' }],
    ])
    const { stage, of, result } = await played([turn, done], { tools: [write], guards: [inside] })
    expect(result.state).toBe('COMPLETED')
    expect(write.inputs).toEqual([{ path: '/out/a' }])
    expect(
      of('tool_result')
        .map(({ status }) => status)
        .sort(),
    ).toEqual(['blocked', 'ok'])
    expect(textOf(stage.wire(1).at(-1))).toBe('Not executed: Write inside /out only.')
    expect(of('guardrail')).toMatchObject([
      { guard: 'user_guard', action: 'block', evidence: 'inside: write({"path":"/etc/passwd"})' },
    ])
  })

  it('refuses the calls it named, even if its list changes later', async () => {
    const ids: string[] = []
    const naming = defineGuard({
      name: 'naming',
      verdict: (_, { fact }) => {
        if (fact.type !== 'calls') return undefined
        ids.push(...fact.calls.map(({ id }) => id))
        return { action: 'block', callIds: ids, message: 'Not these.' }
      },
    })
    const changing = defineGuard({
      name: 'changing',
      verdict: async () => {
        await new Promise((resolve) => setImmediate(resolve))
        ids.length = 0
      },
    })
    const look = tool('look')
    const { of } = await played([call('look'), done], { tools: [look], guards: [naming, changing] })
    expect(look.inputs).toEqual([])
    expect(of('tool_result').map(({ status }) => status)).toEqual(['blocked'])
  })

  it('refuses nothing when the list of calls to refuse is empty', async () => {
    const guard = defineGuard({
      name: 'none',
      verdict: () => ({ action: 'block', message: 'None of these.', callIds: [] }),
    })
    const { result, of } = await played([call('look'), done], { tools: [tool('look')], guards: [guard] })
    expect(result.state).toBe('COMPLETED')
    expect(of('guardrail')).toEqual([])
  })

  it('refuses the whole batch if it names no calls, before anyone is asked to approve it', async () => {
    const pay = tool('pay', undefined, { needsApproval: true })
    const guards = [saying('calls', { action: 'block', message: 'No money today.' })]
    const { result, of } = await played([calls([['pay'], ['pay']]), done], { tools: [pay], guards })
    expect(result.state).toBe('COMPLETED')
    expect(of('approval_requested')).toEqual([])
    expect(of('tool_result').map(({ status }) => status)).toEqual(['blocked', 'blocked'])
  })

  it.each(['calls', 'results'] as const)(
    'nudges about %s: the text is part of the next request and is never saved',
    async (on) => {
      let verdict = 0
      const guard = defineGuard({
        name: 'mine',
        verdict: (_, { fact }) =>
          fact.type === on && ++verdict === 1
            ? { action: 'nudge', message: 'Mind the gap.' }
            : { action: 'ok' },
      })
      const turns = [call('look', { n: 1 }), call('look', { n: 2 }), done]
      const { stage, result, of } = await played(turns, { tools: [tool('look')], guards: [guard] })
      expect(textOf(stage.wire(1).at(-1))).toContain('Mind the gap.')
      expect(JSON.stringify(stage.wire(2))).not.toContain('Mind the gap.')
      expect(JSON.stringify(result.messages)).not.toContain('Mind the gap.')
      expect(of('guardrail')).toMatchObject([
        { guard: 'user_guard', action: 'nudge', message: 'Mind the gap.' },
      ])
    },
  )

  it('halts on calls, none of which run, and reports its name and evidence', async () => {
    const look = tool('look')
    const halt = { action: 'halt', message: 'Ask the owner first.', evidence: 'password=hunter2' } as const
    const { result, of } = await played([call('look')], { tools: [look], guards: [saying('calls', halt)] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'user_guard', steps: 1 })
    expect(result.error).toEqual({
      code: 'user_guard',
      message: "Guard 'mine' stopped the run: Ask the owner first.",
      recoverable: false,
    })
    expect(of('guardrail')).toMatchObject([{ action: 'halt', evidence: 'mine: password=[redacted]' }])
    expect(look.inputs).toEqual([])
    expect(of('tool_result')).toMatchObject([{ status: 'not_executed' }])
  })

  it('halts on results, which are kept', async () => {
    const guards = [saying('results', { action: 'halt', message: 'Enough.' })]
    const { result } = await played([call('look')], { tools: [tool('look', () => 'seen')], guards })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'user_guard' })
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'seen' })
  })

  it('is followed by a final answer if configured', async () => {
    const guards = [saying('results', { action: 'halt', message: 'Enough.' })]
    const limits = { onLimit: 'conclude' as const }
    const { result } = await played([call('look'), done], { tools: [tool('look')], guards, limits })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'user_guard', output: 'Done.' })
  })

  it('is not called for calls that a built-in guard has already refused', async () => {
    const { guard, facts } = listening()
    const guardrails = { repeatedCall: { onRepeat: 'block' as const }, repeatedOutput: null }
    const turns = [...Array.from({ length: 4 }, () => call('look')), done]
    const { result } = await played(turns, { tools: [tool('look')], guards: [guard], guardrails })
    expect(result.state).toBe('COMPLETED')
    expect(facts.filter(({ type }) => type === 'calls')).toHaveLength(3)
    expect(facts.at(-1)).toMatchObject({ type: 'results', results: [{ status: 'blocked' }] })
  })

  it('sees the arguments that a person has edited next to the result', async () => {
    const { guard, facts } = listening()
    const pay = tool('pay', undefined, { needsApproval: true })
    const theatre = await stage([call('pay', { amount: 900 }), done], { tools: [pay], guards: [guard] })
    const play = theatre.run()
    const { pending } = await play.rest()
    play.run.approve(pending?.[0]?.callId ?? '', { amount: 9 })
    await play.end(2)
    expect(facts).toMatchObject([
      { calls: [{ arguments: { amount: 900 } }] },
      { results: [{ arguments: { amount: 9 }, status: 'ok' }] },
    ])
  })
})

describe('several guards', () => {
  it('run concurrently; a halt outweighs a block, and a block outweighs a nudge', async () => {
    const order: string[] = []
    const guards = (['nudge', 'block', 'halt'] as const).map((action) =>
      defineGuard({
        name: action,
        verdict: async () => {
          order.push(`asks ${action}`)
          await Promise.resolve()
          order.push(`${action} answers`)
          return { action, message: `The ${action} of it.` }
        },
      }),
    )
    const { result, of } = await played([call('look')], { tools: [tool('look')], guards })
    expect(result.error?.message).toContain("Guard 'halt' stopped the run")
    expect(order.slice(0, 3)).toEqual(['asks nudge', 'asks block', 'asks halt'])
    expect(of('guardrail').map(({ action }) => action)).toEqual(['block', 'nudge', 'halt'])
  })
})

describe('the state of a guard', () => {
  it('lasts from step to step, and is stored with the session', async () => {
    const session = createSession()
    const theatre = await stage([call('look', { n: 1 }), call('look', { n: 2 }), done], {
      tools: [tool('look')],
      guards: [counting('few', 9), saying('calls', true)],
    })
    await theatre.run('Go.', { session }).end(3)
    expect(session.metadata.guardrails.user).toEqual({ few: { batches: 2 } })
  })

  it('is reset by each user message', async () => {
    const theatre = await stage([call('look'), call('look'), done, call('look'), done], {
      tools: [tool('look')],
      guards: [counting('few', 2)],
    })
    const session = createSession()
    expect((await theatre.run('Go.', { session }).end(3)).state).toBe('COMPLETED')
    expect((await theatre.run('Again.', { session }).end(5)).state).toBe('COMPLETED')
    expect(session.metadata.guardrails.user).toEqual({ few: { batches: 1 } })
  })

  it('is reset when a pause is resumed, only for the guard that halted', async () => {
    const theatre = await stage([call('look', { n: 1 }), call('look', { n: 2 }), done], {
      tools: [tool('look')],
      guards: [counting('few', 1, { onHalt: 'pause' }), counting('many', 9)],
    })
    const play = theatre.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'user_guard', resumable: true })
    expect(rememberedBy(play)).toEqual({ few: { batches: 2 }, many: { batches: 2 } })
    play.run.resume()
    expect((await play.end(3)).output).toBe('Done.')
    expect(rememberedBy(play)).toEqual({ many: { batches: 2 } })
  })

  it('is passed frozen, and stored as a copy', async () => {
    const seen: unknown[] = []
    const guard = defineGuard({
      name: 'list',
      initial: { names: [] as string[] },
      observe: (state) => {
        seen.push(Object.isFrozen(state.names))
        return { names: [...state.names, 'x'], last: undefined }
      },
      verdict: () => true,
    })
    const play = await played([call('look'), done], { tools: [tool('look')], guards: [guard] })
    expect(seen).toEqual([true, true])
    expect(play.result.state).toBe('COMPLETED')
    expect(rememberedBy(play)).toEqual({ list: { names: ['x', 'x'] } })
  })
})

describe('a guard that fails', () => {
  const never = new Promise<never>(() => undefined)
  const circle: { self?: unknown } = {}
  circle.self = circle
  const hostile = {
    get action(): never {
      return boom()
    },
  }

  it.each<[string, Partial<Record<'observe' | 'verdict', unknown>>, RegExp]>([
    ['throws in verdict', { verdict: boom }, /it threw: boom/],
    ['throws in observe', { observe: boom }, /it threw: boom/],
    ['rejects', { verdict: () => Promise.reject(new TypeError('no network')) }, /it threw: no network/],
    ['throws undefined', { verdict: () => Promise.reject() }, /it threw: undefined/],
    ['returns false', { verdict: () => false }, /returned false; return nothing, true/],
    ['returns a string', { verdict: () => 'ok' }, /returned a string/],
    ['returns null', { verdict: () => null }, /returned null/],
    [
      'returns no known action',
      { verdict: () => ({ action: 'stop', message: 'Stop.' }) },
      /without a valid action/,
    ],
    ['halts without a message', { verdict: () => ({ action: 'halt' }) }, /a halt without a message/],
    [
      'nudges with an empty message',
      { verdict: () => ({ action: 'nudge', message: ' ' }) },
      /without a message/,
    ],
    [
      'refuses invalid calls',
      { verdict: () => ({ action: 'block', message: 'No.', callIds: ['x'] }) },
      /callIds are not ids of these calls/,
    ],
    [
      'refuses something other than a list of calls',
      { verdict: () => ({ action: 'block', message: 'No.', callIds: 'x' }) },
      /callIds are not ids/,
    ],
    ['returns a value that throws when it is read', { verdict: () => hostile }, /it threw: boom/],
    ['returns a promise from observe', { observe: () => Promise.resolve(1) }, /state that is not plain JSON/],
    ['returns nothing from observe', { observe: () => undefined }, /state that is not plain JSON/],
    ['remembers a cycle', { observe: () => circle }, /state that is not plain JSON/],
    ['remembers a Map', { observe: () => new Map([['a', 1]]) }, /state that is not plain JSON/],
    ['remembers a date', { observe: () => ({ at: new Date(0) }) }, /state that is not plain JSON/],
    ['remembers NaN', { observe: () => [Number.NaN] }, /state that is not plain JSON/],
    ['remembers a BigInt', { observe: () => 1n }, /state that is not plain JSON/],
    ['remembers too much', { observe: () => 'x'.repeat(2048) }, /has 2050 bytes as JSON, but at most 2048/],
    [
      'changes the fact',
      {
        verdict: (_: null, { fact }: { fact: { calls: unknown[] } }) => {
          fact.calls.length = 0
        },
      },
      /it threw: Cannot assign to read only property/,
    ],
  ])('because it %s stops the run, or causes a warning if configured', async (_, bad, words) => {
    const look = tool('look')
    const guard = { name: 'bad', verdict: () => undefined, ...bad } as unknown as UserGuard
    const stopped = await played([call('look')], { tools: [look], guards: [guard] })
    expect(stopped.result).toMatchObject({ state: 'ERROR', reason: 'user_guard' })
    expect(stopped.result.error?.message).toMatch(/^Guard 'bad' failed: /)
    expect(stopped.result.error?.message).toMatch(words)
    expect(look.inputs).toEqual([])

    const lenient = { ...guard, onError: 'ignore' as const }
    const { result, of } = await played([call('look'), done], { tools: [look], guards: [lenient] })
    expect(result.state).toBe('COMPLETED')
    expect(look.inputs).toHaveLength(1)
    expect(of('warning').map(({ code }) => code)).toContain('guard_failed')
    expect(of('warning')[0]?.message).toMatch(words)
  })

  it('cannot refuse calls that have run', async () => {
    const guards = [saying('results', { action: 'block', message: 'Too late.' })]
    const { result } = await played([call('look')], { tools: [tool('look')], guards })
    expect(result.error?.message).toMatch(
      /a block for results, but calls that have already run cannot be refused/,
    )
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', content: 'ok' })
  })

  it('has its text and its evidence truncated', async () => {
    const guards = [saying('results', { action: 'nudge', message: 'long '.repeat(10_000) })]
    const { stage, of } = await played([call('look', { text: 'y'.repeat(5_000) }), done], {
      tools: [tool('look')],
      guards,
    })
    expect(of('guardrail')[0]?.message).toHaveLength(2000)
    expect(of('guardrail')[0]?.evidence.length).toBeLessThanOrEqual(600)
    expect(textOf(stage.wire(1).at(-1)).length).toBeLessThan(2100)
  })

  it('counts as failed after its time limit, and its signal aborts', async () => {
    const called = latch()
    const signals: AbortSignal[] = []
    const guard = defineGuard({
      name: 'slow',
      timeoutMs: 300,
      verdict: (_, question) => {
        signals.push(question.signal)
        called.open()
        return never
      },
    })
    const theatre = await stage([call('look')], { tools: [tool('look')], guards: [guard] })
    const play = theatre.run()
    await called.opened
    theatre.clock.increment(299)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    theatre.clock.increment(1)
    expect(signals[0]?.reason).toMatchObject({ name: 'TimeoutError' })
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'ERROR', reason: 'user_guard' })
    expect(result.error?.message).toContain('verdict() took longer than 300 ms')
  })
})

describe('while a guard is evaluated', () => {
  it.each(['calls', 'results'] as const)(
    'cancel takes precedence over its verdict on %s, and aborts it',
    async (on) => {
      const { play, look, answer, isAborted } = await waiting(on)
      play.run.cancel()
      expect(await play.end(1)).toMatchObject({ state: 'CANCELLED', reason: 'cancelled' })
      expect(isAborted()).toBe(true)
      answer.open()
      expect(look.inputs).toHaveLength(on === 'calls' ? 0 : 1)
    },
  )

  it('its signal is aborted if an earlier guard cancels the run', async () => {
    let cancel = (): void => undefined
    const first = defineGuard({
      name: 'first',
      verdict: () => {
        cancel()
        return true
      },
    })
    const signals: AbortSignal[] = []
    const second = defineGuard({ name: 'second', verdict: (_, { signal }) => void signals.push(signal) })
    const theatre = await stage([call('look'), done], { tools: [tool('look')], guards: [first, second] })
    const play = theatre.run()
    cancel = () => play.run.cancel()
    expect((await play.end(1)).state).toBe('CANCELLED')
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  })

  it('the deadline takes precedence, too', async () => {
    const { play, theatre, isAborted } = await waiting('calls', { limits: { timeoutMs: 5_000 } })
    theatre.clock.increment(5_000)
    expect((await play.end(1)).state).toBe('TIMED_OUT')
    expect(isAborted()).toBe(true)
  })

  it('a pause waits for it, and for the next safe point', async () => {
    const { play, answer } = await waiting('calls')
    play.run.pause()
    play.run.steer('Hurry.')
    answer.open()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'paused' })
    play.run.resume()
    expect((await play.end(2)).output).toBe('Done.')
  })
})

describe('the machine with custom guards', () => {
  it('replays its journal to the same state, because verdicts are data', async () => {
    const journal = memoryJournal()
    const guards = [
      defineGuard({
        name: 'count',
        initial: 0,
        observe: (n) => n + 1,
        verdict: () => Promise.resolve(true as const),
      }),
    ]
    const theatre = await stage([call('look'), done], { tools: [tool('look')], guards })
    const play = theatre.run('Go.', { journal })
    await play.end(2)
    const stored = JSON.parse(JSON.stringify(journal.entries)) as typeof journal.entries
    expect(stored).toEqual(journal.entries)
    expect(JSON.stringify(fold(stored).context)).toBe(
      JSON.stringify((play.run.snapshot() as { context: unknown }).context),
    )
  })

  it('also calls them in a plain actor, with the app’s own object', async () => {
    const contexts: unknown[] = []
    const guard = defineGuard({
      name: 'who',
      verdict: (_, { context }) => {
        contexts.push(context)
        return true
      },
    })
    const theatre = await stage([call('look'), done], { tools: [tool('look')], guards: [guard] })
    const input = theatre.agent.createInput('Go.', { context: { user: 7 } })
    const actor = createActor(theatre.agent.machine, { input })
    actor.start()
    expect((await toPromise(actor)).state).toBe('COMPLETED')
    expect(contexts).toEqual([{ user: 7 }, { user: 7 }])
  })
})
