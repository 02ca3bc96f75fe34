import { jest } from '@jest/globals'
import { createActor, toPromise } from 'xstate'
import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import {
  type AgentOptions,
  createAgent,
  type LogRecord,
  memoryStore,
  openaiChat,
  presets,
  type SessionStore,
  type Tool,
} from '../../src/index.js'
import type { Turn, TurnFunction } from '../../src/rehearsal/index.js'
import { latch, type Stage, stage, textOf, tick, until } from '../support/play.js'
import { historyProblem } from '../support/history.js'
import { call, calls, clientTool, text, times, tool } from '../support/tools.js'

type Turns = readonly (Turn | TurnFunction)[]

const description = 'Finds things out.'
const research = (child: Stage, options = {}): Tool =>
  child.agent.asTool({ name: 'research', description, ...options }) as Tool
const ask = (task = 'Look it up.'): Turn => call('research', { task })

/** A parent and a child, each with a model of its own. */
async function pair(
  parentTurns: Turns,
  childTurns: Turns,
  options: { parent?: Partial<AgentOptions>; child?: Partial<AgentOptions>; tool?: object } = {},
): Promise<{ parent: Stage; child: Stage }> {
  const child = await stage(childTurns, options.child)
  const { tools = [], ...rest } = options.parent ?? {}
  const parent = await stage(parentTurns, { tools: [research(child, options.tool), ...tools], ...rest })
  return { parent, child }
}

const priced = (words: string, tokens: number): Turn =>
  text(words, { usage: { input: tokens - 1, output: 1 } })
const asked = (turn: Turn, tokens: number): Turn => ({ ...turn, usage: { input: tokens - 1, output: 1 } })

describe('a sub-agent', () => {
  it('is a tool: its task is a user message, its answer the result', async () => {
    const { parent, child } = await pair([ask('How many?'), text('Four.')], [text('It is 4.')])
    const play = parent.run()
    const result = await play.end(2)
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Four.' })
    expect(child.wire(0)).toMatchObject([{ role: 'user', content: 'How many?' }])
    expect(parent.wire(1).at(-1)).toMatchObject({ role: 'tool', content: 'It is 4.' })
    expect(parent.requests[0]?.body.tools).toMatchObject([
      { function: { name: 'research', parameters: { required: ['task'] } } },
    ])
  })

  it('tells everything from its first event on', async () => {
    const { parent } = await pair([ask('How many?'), text('Four.')], [text('It is 4.')])
    const play = parent.run()
    await play.end(2)
    const told = play.of('child_event').map(({ event }) => event)
    expect(told.slice(0, 3).map(({ type }) => type)).toEqual(['run_started', 'state_changed', 'user_message'])
    expect(told.map(({ seq }) => seq)).toEqual(told.map((_, i) => i + 1))
  })

  it('rolls its usage up into the totals of the run, as it happens, and once', async () => {
    const look = tool('look')
    const { parent } = await pair(
      [asked(ask(), 100), priced('Done.', 100)],
      [asked(call('look'), 10), priced('Seen.', 20)],
      { child: { tools: [look] } },
    )
    const play = parent.run()
    const { usage } = await play.end(2)
    expect(usage.totalTokens).toBe(230)
    expect(play.of('usage').map(({ run, callId }) => [callId, run.totalTokens])).toEqual([
      [undefined, 100],
      ['call_1_1', 110],
      ['call_1_1', 130],
      [undefined, 230],
    ])
  })
})

describe('the budget', () => {
  it('is what the run has left: the sub-agent that uses it up ends the run', async () => {
    const { parent, child } = await pair([asked(ask(), 100)], times(9, asked(call('look'), 400)), {
      parent: { limits: { tokenBudget: 1_000 } },
      child: { tools: [tool('look', ({ n }) => n)] },
    })
    const play = parent.run()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget' })
    expect(result.usage.totalTokens).toBe(1_300)
    expect(child.requests).toHaveLength(3)
    expect(textOf(result.messages.at(-1))).toMatch(/did not finish: it has used up the budget.*look \(3\)/s)
  })

  it('is one for all: two sub-agents overspend it by no more than a step each', async () => {
    const { parent, child } = await pair(
      [
        asked(
          calls([
            ['research', { task: 'A' }],
            ['research', { task: 'B' }],
          ]),
          100,
        ),
      ],
      times(20, asked(call('look'), 300)),
      { parent: { limits: { tokenBudget: 1_000 } }, child: { tools: [tool('look')] } },
    )
    const play = parent.run()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'BUDGET_EXCEEDED' })
    expect(child.requests.length).toBeLessThanOrEqual(5)
    expect(result.usage.totalTokens).toBeLessThanOrEqual(1_000 + 2 * 300)
    expect(play.of('tool_result')).toHaveLength(2)
  })

  it('counts what the others were in the middle of', async () => {
    const streamed = latch()
    const turn: TurnFunction = async ({ body }) => {
      if (textOf(body.messages[0]) === 'B') return text('Half an answer.', { chunkSize: 4, hang: 1 })
      await streamed.opened
      return priced('Much.', 2_000)
    }
    const { parent } = await pair(
      [
        asked(
          calls([
            ['research', { task: 'B' }],
            ['research', { task: 'A' }],
          ]),
          100,
        ),
      ],
      [turn, turn],
      { parent: { limits: { tokenBudget: 1_000 } } },
    )
    const play = parent.run()
    await play.event('child_event', ({ event }) => event.type === 'stream_chunk' && event.text !== '')
    streamed.open()
    const { usage, state } = await play.end(1)
    expect(state).toBe('BUDGET_EXCEEDED')
    expect(usage).toMatchObject({ estimated: true })
    expect(usage.totalTokens).toBeGreaterThan(2_100)
  })

  it('that is spent starts none', async () => {
    const { parent, child } = await pair([asked(ask(), 1_000)], [text('No.')], {
      parent: { limits: { tokenBudget: 1_000 }, budget: { finishBatch: true } },
    })
    expect((await parent.run().end(1)).state).toBe('BUDGET_EXCEEDED')
    expect(child.requests).toHaveLength(0)
  })
})

describe('an unfinished sub-agent', () => {
  it.each<[string, Partial<AgentOptions>, object, Turns, RegExp]>([
    [
      'its step limit',
      {},
      { maxSteps: 2 },
      times(2, call('look', {}, { text: 'I saw a bird.' })),
      /limit of 2 steps.*I saw a bird/s,
    ],
    [
      'its own budget',
      { limits: { tokenBudget: 10 } },
      {},
      [asked(call('look'), 20)],
      /used up the budget.*look \(1\)/s,
    ],
    [
      'a guard',
      { ...presets.openhuman },
      {},
      times(3, call('look')),
      /a guardrail stopped it \(repeated_call\)/,
    ],
    [
      'its provider',
      { retry: { maxAttempts: 1 } },
      {},
      [{ status: 503 }],
      /it failed \(server_error\).*nothing so far/s,
    ],
  ])(
    'that was stopped by %s is reported as unfinished, with what it had so far',
    async (_, options, how, turns, words) => {
      const { parent, child } = await pair([ask(), text('Then I do it.')], turns, {
        child: { tools: [tool('look', () => 'seen', { readOnly: true })], ...options },
        tool: how,
      })
      const play = parent.run()
      expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
      expect(textOf(parent.wire(1).at(-1))).toMatch(/^The sub-agent did not finish: /)
      expect(textOf(parent.wire(1).at(-1))).toMatch(words)
      expect(play.of('tool_result')).toMatchObject([{ status: 'error' }])
      expect(child.requests).toHaveLength(turns.length)
    },
  )
})

describe('the lifted cap', () => {
  const stepwise = (steps: number): TurnFunction[] =>
    Array.from({ length: steps }, (_, n) => () => (n < steps - 1 ? call('look', { n }) : text('All seen.')))
  const look = () => tool('look', ({ n }) => `page ${n}`, { readOnly: true })

  it('is asTool({ maxSteps }): 60 steps, where 10 are its own', async () => {
    const { parent, child } = await pair([ask(), text('Done.')], stepwise(60), {
      child: { tools: [look()], limits: { maxSteps: 10 } },
      tool: { maxSteps: 60 },
    })
    await parent.run().end(2)
    expect(child.requests).toHaveLength(60)
    expect(textOf(parent.wire(1).at(-1))).toBe('All seen.')
  })

  it('is presets.openhumanTask: 60 steps, where openhuman stops after 10', async () => {
    const task = await pair([ask(), text('Done.')], stepwise(60), {
      child: { ...presets.openhumanTask, tools: [look()] },
    })
    await task.parent.run().end(2)
    expect(textOf(task.parent.wire(1).at(-1))).toBe('All seen.')
    const chat = await pair([ask(), text('Done.')], stepwise(60), {
      child: { ...presets.openhuman, tools: [look()] },
    })
    await chat.parent.run().end(2)
    expect(textOf(chat.parent.wire(1).at(-1))).toMatch(/limit of 10 steps/)
    expect(chat.child.requests).toHaveLength(10)
  })
})

describe('terminal delegation', () => {
  const quota: Turn = {
    status: 429,
    error: {
      message: 'You exceeded your current quota.',
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    },
  }

  it('halts the run at once: what runs is stopped, what waits is never executed', async () => {
    const slow = tool(
      'slow',
      (_input, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('stopped')))
        }),
    )
    const never = tool('never')
    const { parent, child } = await pair(
      [calls([['slow'], ['research', { task: 'Go.' }], ['never']])],
      [quota],
      { parent: { tools: [slow, never], toolCalls: { concurrency: 2 } } },
    )
    const play = parent.run()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'ERROR', reason: 'terminal_delegation' })
    expect(result.error?.message).toContain('account at its provider is exhausted')
    expect(child.requests).toHaveLength(1)
    expect(never.inputs).toEqual([])
    const results = Object.fromEntries(play.of('tool_result').map(({ name, status }) => [name, status]))
    expect(results).toEqual({ slow: 'interrupted', research: 'error', never: 'not_executed' })
  })

  it.each([
    ['model', { status: 404, error: { message: 'No such model.', code: 'model_not_found' } }],
    ['key', { status: 401, error: { message: 'Wrong key.', code: 'invalid_api_key' } }],
    [
      'parameters',
      { status: 400, error: { message: 'Bad value.', type: 'invalid_request_error', code: null } },
    ],
  ])('is a rejected %s, too', async (_, turn: Turn) => {
    const { parent } = await pair([ask()], [turn])
    const result = await parent.run().end(1)
    expect(result).toMatchObject({ state: 'ERROR', reason: 'terminal_delegation' })
    expect(result.error?.message).toContain('rejected the model, the key or the parameters')
  })

  it('is none where the guard is off, and none when another request would do', async () => {
    const off = await pair([ask(), text('Alone then.')], [quota], {
      parent: { guardrails: { terminalDelegation: null } },
    })
    expect((await off.parent.run().end(2)).state).toBe('COMPLETED')
    const policy = { status: 400, error: { message: 'Refused.', code: 'content_policy_violation' } }
    const other = await pair([ask(), text('Alone then.')], [policy])
    expect((await other.parent.run().end(2)).state).toBe('COMPLETED')
  })

  it('is not in the words of an ordinary tool, nor in those of a sub-agent that completes', async () => {
    const words = 'Error: 429 insufficient_quota. ERROR provider_quota: the account is exhausted.'
    const theatre = await stage([call('look'), text('I see.')], {
      tools: [
        tool('look', () => {
          throw new Error(words)
        }),
      ],
    })
    expect((await theatre.run().end(2)).state).toBe('COMPLETED')
    const { parent } = await pair([ask(), text('I see.')], [text(words)])
    expect((await parent.run().end(2)).state).toBe('COMPLETED')
  })
})

describe('depth', () => {
  /** An agent that has itself among its tools: only a source can be that late. */
  async function narcissus(options = {}): Promise<Stage> {
    const self = { name: 'self', tools: [] as Tool[] }
    const turn: TurnFunction = ({ body }) => {
      const last = body.messages.at(-1)
      return last?.role === 'tool' ? text(`So: ${textOf(last)}`) : ask()
    }
    const theatre = await stage(times(12, turn), { tools: [self] })
    self.tools = [research(theatre, options)]
    return theatre
  }

  it.each([
    [{}, 4],
    [{ maxDepth: 1 }, 2],
  ])('has a limit, and a sub-agent that calls itself is told: %j', async (options, runs) => {
    const theatre = await narcissus(options)
    const play = theatre.run()
    const { output, state } = await play.run.result
    expect(state).toBe('COMPLETED')
    expect(output).toMatch(new RegExp(`may be nested ${runs - 1} deep \\(maxDepth\\)`))
    expect(theatre.requests).toHaveLength(2 * runs)
  })

  it.each([
    [{ maxDepth: 0 }, /maxDepth must be a whole number from 1/],
    [{ maxSteps: -1 }, /limits\.maxSteps/],
    [{ maxSteps: Number.NaN }, /limits\.maxSteps/],
    [{ timeoutMs: 'soon' }, /limits\.timeoutMs/],
    [{ prompt: 'Do.' }, /prompt must be a function/],
    [{ name: 'a b' }, /cannot be named 'a b'/],
    [{ description: '' }, /description is missing/],
    [{ steps: 3 }, /there is no option 'steps'/],
  ])('and every other option is checked: %j', async (options, message) => {
    const child = await stage([text('Hi.')])
    expect(() => research(child, options)).toThrow(message)
  })
})

describe('an input of its own', () => {
  const input = { type: 'object', properties: { city: { type: 'string' } } } as const

  it('becomes a message as JSON, or as prompt says', async () => {
    const plain = await pair([call('research', { city: 'Rome' }), text('.')], [text('Sunny.')], {
      tool: { input },
    })
    await plain.parent.run().end(2)
    expect(plain.child.wire(0)).toMatchObject([{ content: '{"city":"Rome"}' }])
    const prompt = ({ city }: { city: string }) => `The weather in ${city}?`
    const asks = await pair([call('research', { city: 'Rome' }), text('.')], [text('Sunny.')], {
      tool: { input, prompt },
    })
    await asks.parent.run().end(2)
    expect(asks.child.wire(0)).toMatchObject([{ content: 'The weather in Rome?' }])
  })

  it.each([
    [{}, { task: ' ' }, /do not fit its schema[\s\S]*task/],
    [{}, {}, /do not fit its schema[\s\S]*task/],
    [{ input, prompt: () => '' }, {}, /could not be run/],
    [
      {
        input,
        prompt: () => {
          throw new Error('no city')
        },
      },
      {},
      /could not be run: .*no city/,
    ],
  ])('that is bad is told to the model, and nothing is run: %#', async (how, given, words) => {
    const { parent, child } = await pair([call('research', given), text('.')], [text('No.')], { tool: how })
    await parent.run().end(2)
    expect(textOf(parent.wire(1).at(-1))).toMatch(words)
    expect(child.requests).toHaveLength(0)
  })
})

describe('cancelling', () => {
  it('reaches the sub-agent: its request is cut off, its cost counted, and its log says so', async () => {
    const store = memoryStore()
    const { parent } = await pair([ask()], [text('Half an answer.', { chunkSize: 4, hang: 1 })], {
      parent: { store },
    })
    const play = parent.run('Go.', { session: 's' })
    await play.event('child_event', ({ event }) => event.type === 'stream_chunk' && event.text !== '')
    const before = play.of('usage').at(-1)?.run.totalTokens ?? 0
    play.run.cancel()
    const result = await play.end(1)
    expect(result).toMatchObject({ state: 'CANCELLED' })
    expect(result.usage.totalTokens).toBeGreaterThan(before)
    const sessions = store.list()
    expect(sessions.map(({ summary, holder }) => [summary?.state, holder])).toEqual([
      ['CANCELLED', null],
      ['CANCELLED', null],
    ])
  })

  it('leaves nothing running, however deep', async () => {
    const leaf = await stage([{ hang: true }])
    const middle = await stage([ask()], { tools: [research(leaf)] })
    const top = await stage([ask()], { tools: [research(middle)] })
    const play = top.run()
    await leaf.arrival()
    play.run.cancel()
    await play.end(1)
    const ends = play.of('child_event').filter(({ event }) => event.type === 'run_ended')
    expect(ends.map(({ path, event }) => [path.length, 'state' in event && event.state])).toEqual([
      [2, 'CANCELLED'],
      [1, 'CANCELLED'],
    ])
  })

  it('ends one that waits for somebody, too', async () => {
    const store = memoryStore()
    const { parent } = await pair([ask()], [call('pay')], {
      parent: { store },
      child: { tools: [tool('pay', () => 'paid', { needsApproval: true })] },
    })
    const play = parent.run()
    await play.rest()
    play.run.cancel()
    await play.end(1)
    await tick()
    expect(store.list().map(({ summary }) => summary?.state)).toEqual(['CANCELLED', 'CANCELLED'])
  })

  it('ends one that waits for somebody in another process', async () => {
    const store = memoryStore()
    const { parent } = await pair([ask()], [call('pay')], {
      parent: { store },
      child: { tools: [tool('pay', () => 'paid', { needsApproval: true })] },
    })
    await parent.run('Go.', { session: 's' }).rest()
    const resumed = await parent.agent.resume('s')
    await resumed.result
    resumed.cancel()
    await resumed.result
    await tick()
    await tick()
    expect(store.list().map(({ summary }) => summary?.state)).toEqual(['CANCELLED', 'CANCELLED'])
  })
})

describe('the deadline', () => {
  it('reaches the sub-agent', async () => {
    const { parent, child } = await pair([ask()], [{ hang: true }], {
      parent: { limits: { timeoutMs: 1_000 } },
    })
    const play = parent.run()
    await child.arrival()
    parent.clock.increment(1_000)
    expect(await play.end(1)).toMatchObject({ state: 'TIMED_OUT' })
    expect(play.of('child_event').at(-1)?.event).toMatchObject({ type: 'run_ended', state: 'CANCELLED' })
  })

  it('may be its own: asTool({ timeoutMs })', async () => {
    const { parent, child } = await pair([ask(), text('.')], [{ hang: true }], { tool: { timeoutMs: 500 } })
    const play = parent.run()
    await child.arrival()
    child.clock.increment(500)
    await play.end(2)
    expect(textOf(parent.wire(1).at(-1))).toMatch(/its time was up/)
  })
})

describe('a pause', () => {
  it('reaches the sub-agent, which rests at its next safe point and goes on from there', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent, child } = await pair([ask(), text('Done.')], [call('look'), text('Seen.')], {
      child: { tools: [look] },
    })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    gate.open()
    const resting = await play.run.result
    expect(resting).toMatchObject({ state: 'PAUSED', reason: 'paused', resumable: true })
    expect(historyProblem(resting.messages, ['call_1_1'])).toBeNull()
    expect(child.requests).toHaveLength(1)
    play.run.resume()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(child.requests).toHaveLength(2)
    expect(look.inputs).toHaveLength(1)
    expect(textOf(parent.wire(1).at(-1))).toBe('Seen.')
  })

  it('that is steered goes on, too, and the model hears it after the batch', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent } = await pair([ask(), text('Done.')], [call('look'), text('Seen.')], {
      child: { tools: [look] },
    })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    gate.open()
    await play.run.result
    play.run.steer('Hurry.')
    await play.end(2)
    expect(parent.wire(1).slice(-2).map(textOf)).toEqual(['Seen.', 'Hurry.'])
  })

  it('ends with cancelling', async () => {
    const gate = latch()
    const look = tool('look', () => gate.opened)
    const { parent } = await pair([ask()], [call('look')], { child: { tools: [look] } })
    const play = parent.run()
    await until(() => look.inputs.length === 1)
    play.run.pause()
    gate.open()
    await play.run.result
    play.run.cancel()
    expect(await play.end(1)).toMatchObject({ state: 'CANCELLED' })
    expect(play.of('tool_result')).toMatchObject([{ status: 'interrupted' }])
  })
})

describe('an approval of a sub-agent', () => {
  const pay = () => tool('pay', ({ amount }) => `paid ${amount}`, { needsApproval: true })

  it('surfaces in the run, with its path, and is answered there', async () => {
    const tools = [pay()]
    const { parent, child } = await pair(
      [ask(), text('Done.')],
      [
        calls([
          ['pay', { amount: 1 }],
          ['pay', { amount: 2 }],
          ['pay', { amount: 3 }],
        ]),
        text('Paid.'),
      ],
      { child: { tools } },
    )
    const play = parent.run()
    const resting = await play.rest()
    expect(resting).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval' })
    expect(resting.pending).toMatchObject([
      {
        callId: 'call_1_1/call_1_1',
        name: 'pay',
        arguments: '{"amount":1}',
        needs: 'approval',
        path: ['research'],
      },
      { callId: 'call_1_1/call_1_2' },
      { callId: 'call_1_1/call_1_3' },
    ])
    expect(play.of('approval_requested')).toMatchObject(
      (resting.pending ?? []).map(({ callId, fingerprint, path }) => ({ callId, fingerprint, path })),
    )
    play.run.approve('call_1_1/call_1_2', { amount: 20 })
    expect((await play.rest()).pending).toHaveLength(2)
    play.run.reject('call_1_1/call_1_1', 'Too little.')
    expect(() => play.run.approve('call_1_1/call_1_1')).toThrow(/Waiting: call_1_1\/call_1_3/)
    expect(() => play.run.approve('call_1_1')).toThrow(/does not wait/)
    play.run.approve('call_1_1/call_1_3', undefined, { fingerprint: resting.pending?.[2]?.fingerprint })
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(tools[0]?.inputs).toEqual([{ amount: 20 }, { amount: 3 }])
    expect(child.wire(1).slice(-3).map(textOf)).toEqual([
      'Rejected by the user: Too little.',
      expect.stringContaining('paid 20'),
      'paid 3',
    ])
  })

  it('waits until what else runs has ended, beside approvals of the run itself', async () => {
    const own = pay()
    const { parent } = await pair(
      [calls([['research', { task: 'Pay.' }], ['pay', { amount: 7 }], ['look']]), text('Done.')],
      [call('pay', { amount: 1 }), text('Paid.')],
      { parent: { tools: [own, tool('look')] }, child: { tools: [pay()] } },
    )
    const play = parent.run()
    const { pending } = await play.rest()
    expect(pending?.map(({ callId, path }) => [callId, path])).toEqual([
      ['call_1_1/call_1_1', ['research']],
      ['call_1_2', undefined],
    ])
    play.run.approve('call_1_2')
    play.run.approve('call_1_1/call_1_1')
    await play.end(2)
    expect(parent.wire(1).slice(-3).map(textOf)).toEqual(['Paid.', 'paid 7', 'ok'])
  })

  it('comes through two levels, and so does a call that the client carries out', async () => {
    const leaf = await stage([calls([['pay', { amount: 1 }], ['pick']]), text('Paid.')], {
      tools: [pay(), clientTool('pick')],
    })
    const middle = await stage([ask(), text('All paid.')], { tools: [research(leaf)] })
    const top = await stage([ask(), text('Done.')], { tools: [research(middle)] })
    const play = top.run()
    const { pending } = await play.rest()
    expect(pending).toMatchObject([
      { callId: 'call_1_1/call_1_1/call_1_1', path: ['research', 'research'], needs: 'approval' },
      { callId: 'call_1_1/call_1_1/call_1_2', path: ['research', 'research'], needs: 'client' },
    ])
    play.run.toolOutput('call_1_1/call_1_1/call_1_2', { colour: 'red' })
    play.run.approve('call_1_1/call_1_1/call_1_1')
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(leaf.wire(1).slice(-2).map(textOf)).toEqual(['paid 1', '{"colour":"red"}'])
  })

  it('is answered in another process, as if nothing had happened', async () => {
    const store = memoryStore()
    const { parent, child } = await pair(
      [ask(), text('Done.')],
      [call('pay', { amount: 1 }), text('Paid.')],
      {
        parent: { store },
        child: { tools: [pay()] },
      },
    )
    await parent.run('Go.', { session: 's' }).rest()
    const later = createAgent({
      model: openaiChat({ model: 'gpt-test', baseURL: parent.rehearsal.url, apiKey: 'none' }),
      tools: [research(child)],
      store,
    })
    const run = await later.resume('s')
    const { pending } = await run.result
    expect(pending).toMatchObject([{ callId: 'call_1_1/call_1_1', path: ['research'] }])
    run.approve('call_1_1/call_1_1')
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(child.requests).toHaveLength(2)
  })

  it('cannot be answered when its process is gone and nothing was stored: the model is told', async () => {
    const { parent } = await pair([ask(), text('Done.')], [call('pay', { amount: 1 })], {
      child: { tools: [pay()] },
    })
    const play = parent.run()
    await play.rest()
    const snapshot = play.run.snapshot() as never
    play.run.cancel()
    const actor = createActor(parent.agent.machine, { snapshot, input: undefined as never })
    actor.start()
    actor.send({ type: 'APPROVE', callId: 'call_1_1/call_1_1' })
    expect(await toPromise(actor)).toMatchObject({ state: 'COMPLETED' })
    expect(textOf(parent.wire(1).at(-1))).toMatch(/^Interrupted: .*outcome is unknown/)
  })
})

describe('the inspector', () => {
  it('sees the sub-agent as a child actor of the batch', async () => {
    const seen: [id: string, above: string | undefined][] = []
    const { parent } = await pair([ask(), text('.')], [text('Yes.')], {
      parent: {
        inspect: (event) => {
          if (event.type !== '@xstate.actor') return
          const { id, _parent } = event.actorRef as unknown as { id: string; _parent?: { id: string } }
          seen.push([id, _parent?.id])
        },
      },
    })
    await parent.run().end(2)
    expect(seen).toContainEqual(['research call_1_1', 'tools'])
    expect(seen).toContainEqual(['model', 'research call_1_1'])
  })
})

describe('what happens in a sub-agent', () => {
  it('is told with its path, between the call and its result', async () => {
    const leaf = await stage([text('Leaf.')])
    const middle = await stage([ask(), text('Middle.')], { tools: [research(leaf)] })
    const top = await stage([ask(), text('Top.')], { tools: [research(middle)] })
    const play = top.run()
    await play.end(2)
    const said = play.of('child_event').filter(({ event }) => event.type === 'assistant_message')
    expect(said.map(({ path, callId }) => [path.join(), callId])).toEqual([
      ['research', 'call_1_1'],
      ['research,research', 'call_1_1/call_1_1'],
      ['research', 'call_1_1'],
    ])
    const types = play.events.map(({ type }) => type)
    expect(types.indexOf('tool_call')).toBeLessThan(types.indexOf('child_event'))
    expect(types.lastIndexOf('child_event')).toBeLessThan(types.indexOf('tool_result'))
  })
})

describe('a run that is killed in the middle', () => {
  interface Moment {
    logs: [sessionId: string, records: LogRecord[]][]
    isDone: boolean
  }

  /** A store that remembers what it held after each of its writes. */
  function witnessed(isDone: () => boolean): { store: SessionStore; moments: Moment[] } {
    const kept = memoryStore()
    const logs = new Map<string, LogRecord[]>()
    const moments: Moment[] = []
    const append: SessionStore['append'] = (lease, records, summary) => {
      kept.append(lease, records, summary)
      logs.set(lease.sessionId, [...(logs.get(lease.sessionId) ?? []), ...records])
      moments.push({ logs: [...logs], isDone: isDone() })
    }
    return { store: { ...kept, append }, moments }
  }

  /** What is left after a crash: the records, and nobody who holds them. */
  function leftOf({ logs }: Moment): SessionStore {
    const store = memoryStore()
    for (const [id, records] of logs) {
      const lease = store.acquire(id, { holder: 'the past', ttlMs: 1_000 })
      store.append(lease, records)
      store.release(lease)
    }
    return store
  }

  const after = (words: string, first: Turn): TurnFunction => {
    return ({ body }) => asked(body.messages.at(-1)?.role === 'tool' ? text(words) : first, 100)
  }

  it('is resumed with its sub-agent, wherever it was; nothing is done twice, and everything is counted once', async () => {
    const work = tool('work', () => 'worked')
    const { parent, child } = await pair(
      times(500, after('Done.', ask())),
      times(500, after('Seen.', call('work'))),
      { child: { tools: [work] } },
    )
    const { store, moments } = witnessed(() => work.inputs.length > 0)
    const again = (kept: SessionStore) =>
      createAgent({
        model: openaiChat({ model: 'gpt-test', baseURL: parent.rehearsal.url, apiKey: 'none' }),
        tools: [research(child)],
        store: kept,
      })
    await again(store).run('Go.', { session: 's' }).result
    expect(work.inputs).toHaveLength(1)
    expect(moments.length).toBeGreaterThan(8)
    expect(new Set(moments.map(({ isDone }) => isDone)).size).toBe(2)

    const outcomes: string[] = []
    for (const moment of moments) {
      if (!moment.logs.some(([id, records]) => id === 's' && records.length > 1)) continue
      work.inputs.length = 0
      const kept = leftOf(moment)
      const run = await again(kept).resume('s')
      const result = await run.result
      expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      expect(historyProblem(result.messages)).toBeNull()
      expect(work.inputs.length + (moment.isDone ? 1 : 0)).toBeLessThanOrEqual(1)
      const sessions = await kept.list()
      expect(sessions).toHaveLength(2)
      const { id = '' } = sessions.find((session) => session.id !== 's') ?? {}
      expect(result.usage.totalTokens).toBe(200 + (await again(kept).replay(id)).usage.totalTokens)
      expect(textOf(result.messages.at(-2))).toBe('Seen.')
      outcomes.push(`${work.inputs.length}`)
    }
    expect(new Set(outcomes)).toEqual(new Set(['0', '1']))
  })

  it('is resumed with a sub-agent that was paused or asked, and had got its answer', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { parent, child } = await pair(
      times(500, after('Done.', ask())),
      times(500, after('Paid.', call('pay'))),
      {
        child: { tools: [pay] },
      },
    )
    const { store, moments } = witnessed(() => pay.inputs.length > 0)
    const again = (kept: SessionStore) =>
      createAgent({
        model: openaiChat({ model: 'gpt-test', baseURL: parent.rehearsal.url, apiKey: 'none' }),
        tools: [research(child)],
        store: kept,
      })
    const first = again(store).run('Go.', { session: 's' })
    const [question] = (await first.result).pending ?? []
    first.approve(question?.callId ?? '')
    expect((await first.result).state).toBe('COMPLETED')

    for (const moment of moments) {
      if (!moment.logs.some(([id, records]) => id === 's' && records.length > 1)) continue
      pay.inputs.length = 0
      const run = await again(leftOf(moment)).resume('s')
      const rest = await run.result
      if (rest.state === 'WAITING_FOR_INPUT') run.approve(rest.pending?.[0]?.callId ?? '')
      expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      expect(pay.inputs.length + (moment.isDone ? 1 : 0)).toBeLessThanOrEqual(1)
    }
  })
})

describe('examples/delegation.mjs', () => {
  it('delegates, asks, and counts it all', async () => {
    jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
    jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal }), { virtual: true })
    const example = '../../examples/delegation.mjs'
    const { delegation } = (await import(example)) as { delegation: () => Promise<string[]> }
    expect(await delegation()).toEqual([
      'lead calls research',
      ...times(3, '  research calls read_note'),
      'research says: Rent 1200, travel 310, books 45.',
      'lead calls write',
      '  write calls save',
      'write asks to save: approved',
      'write says: Saved as asked.',
      expect.stringMatching(/^COMPLETED: The report on May is saved/),
    ])
  })
})
