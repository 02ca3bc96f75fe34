import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import type { Tool } from '../../src/index.js'
import type { Turn, TurnFunction } from '../../src/rehearsal/index.js'
import { type Stage, stage, textOf } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'
import { ask, costing, pair, priced, research } from '../support/sub-agents.js'
import { loadExample, provideEntries } from '../support/entries.js'

describe('a sub-agent', () => {
  it('is a tool: its task is a user message, and its answer is the result', async () => {
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

  it('emits everything from its first event on', async () => {
    const { parent } = await pair([ask('How many?'), text('Four.')], [text('It is 4.')])
    const play = parent.run()
    await play.end(2)
    const events = play.of('child_event').map(({ event }) => event)
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      'run_started',
      'state_changed',
      'user_message',
    ])
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
  })

  it('adds its usage to the totals of the run immediately, and once', async () => {
    const look = tool('look')
    const { parent } = await pair(
      [costing(ask(), 100), priced('Done.', 100)],
      [costing(call('look'), 10), priced('Seen.', 20)],
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

describe('terminal delegation', () => {
  const quota: Turn = {
    status: 429,
    error: {
      message: 'You exceeded your current quota.',
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    },
  }

  it('halts the run immediately: running calls stop, and waiting calls never start', async () => {
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
    ['402 of an unknown type', { status: 402, error: { message: 'No.', type: 'unheard_of' } }],
    [
      '429 with a message about it',
      { status: 429, error: { message: 'Your team has used all available credits.' } },
    ],
  ])('is an exhausted account (%s), at the first request', async (_, turn: Turn) => {
    const { parent } = await pair([ask()], [turn])
    const result = await parent.run().end(1)
    expect(result).toMatchObject({ state: 'ERROR', reason: 'terminal_delegation' })
    expect(result.error?.message).toContain('the account at its provider is exhausted')
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

  it('does not exist if the guard is off, or if another request can succeed', async () => {
    const off = await pair([ask(), text('Alone then.')], [quota], {
      parent: { guardrails: { terminalDelegation: null } },
    })
    expect((await off.parent.run().end(2)).state).toBe('COMPLETED')
    const policy = { status: 400, error: { message: 'Refused.', code: 'content_policy_violation' } }
    const other = await pair([ask(), text('Alone then.')], [policy])
    expect((await other.parent.run().end(2)).state).toBe('COMPLETED')
  })

  it('does not apply to the text of an ordinary tool or of a completed sub-agent', async () => {
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
  /** An agent with itself as a tool, which requires a lazy tool source. */
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
  ])('is limited, and a sub-agent that calls itself reads the limit: %j', async (options, runs) => {
    const theatre = await narcissus(options)
    const play = theatre.run()
    const { output, state } = await play.run.result
    expect(state).toBe('COMPLETED')
    expect(output).toMatch(new RegExp(`may be nested only ${runs - 1} deep \\(maxDepth\\)`))
    expect(theatre.requests).toHaveLength(2 * runs)
  })

  it.each([
    [{ maxDepth: 0 }, /maxDepth, how deep sub-agents may be nested, must be a positive integer/],
    [{ maxSteps: -1 }, /limits\.maxSteps/],
    [{ maxSteps: Number.NaN }, /limits\.maxSteps/],
    [{ timeoutMs: 'soon' }, /limits\.timeoutMs/],
    [{ prompt: 'Do.' }, /prompt must be a function/],
    [{ name: 'a b' }, /cannot be named 'a b'/],
    [{ description: '' }, /description is missing/],
    [{ steps: 3 }, /there is no option 'steps'/],
  ])('is validated like every other option: %j', async (options, message) => {
    const child = await stage([text('Hi.')])
    expect(() => research(child, options)).toThrow(message)
  })
})

describe('a custom input schema', () => {
  const input = { type: 'object', properties: { city: { type: 'string' } } } as const

  it('becomes a message as JSON, or the text that prompt returns', async () => {
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
    [{}, { task: ' ' }, /do not match its schema[\s\S]*task/],
    [{}, {}, /do not match its schema[\s\S]*task/],
    [{ input, prompt: () => '' }, {}, /could not run/],
    [
      {
        input,
        prompt: () => {
          throw new Error('no city')
        },
      },
      {},
      /could not run: .*no city/,
    ],
  ])('reports invalid input to the model, and runs nothing: %#', async (how, input, words) => {
    const { parent, child } = await pair([call('research', input), text('.')], [text('No.')], { tool: how })
    await parent.run().end(2)
    expect(textOf(parent.wire(1).at(-1))).toMatch(words)
    expect(child.requests).toHaveLength(0)
  })
})

describe('the inspector', () => {
  it('shows the sub-agent as a child actor of the batch', async () => {
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

describe('the activity of a sub-agent', () => {
  it('is emitted with its path, between the call and its result', async () => {
    const leaf = await stage([text('Leaf.')])
    const middle = await stage([ask(), text('Middle.')], { tools: [research(leaf)] })
    const top = await stage([ask(), text('Top.')], { tools: [research(middle)] })
    const play = top.run()
    await play.end(2)
    const texts = play.of('child_event').filter(({ event }) => event.type === 'assistant_message')
    expect(texts.map(({ path, callId }) => [path.join(), callId])).toEqual([
      ['research', 'call_1_1'],
      ['research,research', 'call_1_1/call_1_1'],
      ['research', 'call_1_1'],
    ])
    const types = play.events.map(({ type }) => type)
    expect(types.indexOf('tool_call')).toBeLessThan(types.indexOf('child_event'))
    expect(types.lastIndexOf('child_event')).toBeLessThan(types.indexOf('tool_result'))
  })
})

describe('examples/delegation.mjs', () => {
  it('delegates, requests approvals, and counts all usage', async () => {
    provideEntries({ statewright: core, 'statewright/rehearsal': rehearsal })
    const { delegation } = await loadExample<{ delegation: () => Promise<string[]> }>('delegation.mjs')
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
