import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import * as z from 'zod'
import {
  type AgentEvent,
  createAgent,
  defineTool,
  handoff,
  memoryStore,
  openaiChat,
  type Policy,
  type PolicyCall,
  type PolicyDecision,
  toolSearch,
} from '../../src/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { replaySession, recordSession } from '../../src/testing/index.js'
import { stage } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'
import { sampled } from '../support/extent.js'

const decideAs = (decision: unknown, more: object = {}): Policy =>
  ({ id: 'payments', decide: () => decision, ...more }) as Policy

/** The outcome of one call of `pay` under a policy. */
async function pay(
  policy: Policy | Policy[],
  more: object = {},
  turns = [call('pay', { amount: 5 }), text('Done.')],
) {
  const paid: unknown[] = []
  const payTool = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    execute: (input) => void paid.push(input),
    ...more,
  })
  const events: AgentEvent[] = []
  const at = await stage(turns, { store: memoryStore(), tools: [payTool], policy })
  const run = at.agent.run('Pay.', { session: 's', by: 'ann', context: { tenant: 'acme' } } as never)
  run.events$.subscribe((event) => events.push(event))
  const result = await run.result
  const [outcome] = events.flatMap((event) => (event.type === 'tool_result' ? [event] : []))
  const decided = events.flatMap(({ ...event }) => {
    if (event.type !== 'policy_decided') return []
    const { id: _i, runId: _r, seq: _s, at: _a, type: _t, callId: _c, ...verdict } = event
    return [verdict]
  })
  return { agent: at.agent, run, result, paid, outcome, decided, events }
}

describe('a policy', () => {
  it('allows a call, and the log contains the decision', async () => {
    const { paid, decided, result, agent } = await pay(decideAs('allow'))
    expect([result.state, paid]).toEqual(['COMPLETED', [{ amount: 5 }]])
    expect(decided).toEqual([{ name: 'pay', policy: 'payments', decision: 'allow' }])
    expect((await agent.replay('s')).messages).toHaveLength(4)
  })

  it('receives the call, its requester, the context and the session', async () => {
    const seen: PolicyCall[] = []
    const decide = (call: PolicyCall): PolicyDecision => {
      seen.push(call)
      return 'allow'
    }
    await pay({ id: 'p', decide })
    const { signal, ...fact } = seen[0]!
    expect(seen).toHaveLength(1)
    expect(signal.aborted).toBe(false)
    expect(fact).toEqual({
      tool: { name: 'pay', kind: 'function', readOnly: false, idempotent: false },
      arguments: { amount: 5 },
      context: { tenant: 'acme' },
      session: { id: 's', tags: {} },
      requester: { id: 'ann' },
      path: [],
      callId: expect.any(String),
    })
  })

  it('asks: people read its reason, and an approval runs the call', async () => {
    const reason = 'Payments need a yes.'
    const { run, result, paid } = await pay(decideAs({ decision: 'ask', rule: 'all', reason }))
    expect(result).toMatchObject({ state: 'WAITING_FOR_INPUT', pending: [{ name: 'pay', reason }] })
    expect(paid).toEqual([])
    run.approve(result.pending![0]!, undefined, { by: 'bob' })
    expect([(await run.result).state, paid]).toEqual(['COMPLETED', [{ amount: 5 }]])
  })

  it('denies: the call does not run, the model reads the reason, and the run continues', async () => {
    const denial = { decision: 'deny', rule: 'limit', reason: 'Above the limit of this account.' }
    const { result, paid, outcome, decided } = await pay(decideAs(denial))
    expect([result.state, paid]).toEqual(['COMPLETED', []])
    expect(outcome).toMatchObject({
      status: 'denied',
      errorKind: 'policy_denied',
      content: 'Not executed: a policy denies this call. Above the limit of this account.',
    })
    expect(decided).toEqual([{ name: 'pay', policy: 'payments', ...denial }])
  })

  const broken: [string, Policy['decide'], string][] = [
    [
      'throws',
      () => {
        throw new Error('no')
      },
      'policy_error',
    ],
    ['rejects', () => Promise.reject(new Error('no')), 'policy_error'],
    ['returns nothing', () => undefined as never, 'policy_invalid'],
    ['returns true', () => true as never, 'policy_invalid'],
    ['returns an unknown word', () => 'permit' as never, 'policy_invalid'],
    ['returns an unknown key', () => ({ decision: 'allow', until: 5 }) as never, 'policy_invalid'],
    [
      'returns a reason that is not a string',
      () => ({ decision: 'allow', reason: 5 }) as never,
      'policy_invalid',
    ],
    ['returns a list', () => ['allow'] as never, 'policy_invalid'],
    [
      'returns a getter that throws',
      () =>
        ({
          get decision() {
            throw new Error('no')
          },
        }) as never,
      'policy_error',
    ],
  ]
  it.each(broken)('that %s denies for now', async (_, decide, rule) => {
    const { paid, outcome, decided } = await pay({ id: 'p', decide })
    expect(paid).toEqual([])
    expect(decided).toEqual([{ name: 'pay', policy: 'p', decision: 'deny', rule }])
    const content = 'Not executed: the policy for this call could not be read. Try again later.'
    expect(outcome).toMatchObject({ status: 'denied', errorKind: 'transient', content })
    const shadowed = await pay({ id: 'p', decide, shadow: true })
    expect(shadowed.paid).toEqual([{ amount: 5 }])
    expect(shadowed.decided).toEqual([{ name: 'pay', policy: 'p', decision: 'deny', rule, shadow: true }])
  })

  it('that never answers denies after its time limit', async () => {
    const clock = new SimulatedClock()
    const signals: AbortSignal[] = []
    const decide = ({ signal }: PolicyCall) => {
      signals.push(signal)
      queueMicrotask(() => clock.increment(700))
      return new Promise<never>(() => undefined)
    }
    const at = await stage([call('pay'), text('Done.')], {
      tools: [tool('pay', () => 'paid')],
      policy: { id: 'p', decide, timeoutMs: 700 },
      clock: {
        now: () => clock.now(),
        setTimeout: (run, ms) => clock.setTimeout(run, ms),
        clearTimeout: (id) => clock.clearTimeout(id as number),
      },
    })
    const events: AgentEvent[] = []
    const run = at.agent.run('Pay.')
    run.events$.subscribe((event) => events.push(event))
    expect((await run.result).state).toBe('COMPLETED')
    expect(events).toContainEqual(expect.objectContaining({ type: 'policy_decided', rule: 'policy_timeout' }))
    expect(signals[0]?.aborted).toBe(true)
  })

  it.each([
    [{ id: '' }, 'policy.id'],
    [{ id: 'x'.repeat(101) }, 'policy.id'],
    [{ decide: 'no' }, 'policy.decide'],
    [{ timeoutMs: 0 }, 'policy.timeoutMs'],
    [{ timeoutMs: Number.NaN }, 'policy.timeoutMs'],
    [{ timeoutMs: Infinity }, 'policy.timeoutMs'],
    [{ shadow: 1 }, 'policy.shadow'],
    [{ timeout: 1 }, 'policy.timeout'],
  ])('is refused with %j', (more, subject) => {
    const model = openaiChat({ model: 'm', apiKey: 'none' })
    const policy = { id: 'p', decide: () => 'allow', ...more } as never
    expect(() => createAgent({ model, policy })).toThrow(
      expect.objectContaining({ code: 'invalid_config', subject }),
    )
    const twice = { id: 'p', decide: () => 'allow' as const }
    expect(() => createAgent({ model, policy: [twice, twice] })).toThrow(/another policy's id/)
    expect(() => createAgent({ model, policy: null as never })).toThrow(/must be \{ id, decide/)
  })
})

describe('the strictest decision', () => {
  const decision = fc.constantFrom('allow' as const, 'ask' as const, 'deny' as const)
  it('of the tool and all policies applies; a shadow only records', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ decision, shadow: fc.boolean() }), { maxLength: 3 }),
        fc.option(fc.oneof(fc.boolean(), decision)),
        async (input, needsApproval) => {
          const policies = input.map(({ decision, shadow }, i) => decideAs(decision, { id: `p${i}`, shadow }))
          const more =
            needsApproval === null
              ? {}
              : { needsApproval: typeof needsApproval === 'string' ? () => needsApproval : needsApproval }
          const { result, paid, outcome, decided } = await pay(policies, more)
          const own =
            needsApproval === true ? 'ask' : typeof needsApproval === 'string' ? needsApproval : 'allow'
          const enforced = [own, ...input.filter(({ shadow }) => !shadow).map((one) => one.decision)]
          const strictest = (['deny', 'ask', 'allow'] as const).find((one) => enforced.includes(one))
          expect({
            asks: result.state === 'WAITING_FOR_INPUT',
            runs: paid.length,
            status: outcome?.status,
          }).toEqual({
            asks: strictest === 'ask',
            runs: strictest === 'allow' ? 1 : 0,
            status: { allow: 'ok', ask: undefined, deny: 'denied' }[strictest!],
          })
          const isWhole = typeof needsApproval === 'string'
          expect(decided).toHaveLength(input.length + (isWhole ? 1 : 0))
        },
      ),
      { numRuns: sampled(25) },
    )
  })

  it('of a call that cannot run is not requested', async () => {
    const requests: string[] = []
    const decide = ({ tool: { name } }: PolicyCall): PolicyDecision => {
      requests.push(name)
      return 'allow'
    }
    const { agent } = await stage([calls([['unknown'], ['pay', '{'], ['later', {}]]), text('Done.')], {
      tools: [tool('pay', () => 'paid'), { ...tool('later', () => 1), defer: true as const }, toolSearch()],
      policy: { id: 'p', decide },
    })
    expect((await agent.run('Pay.').result).state).toBe('COMPLETED')
    expect(requests).toEqual([])
  })

  it('asks before a client executes its tool', async () => {
    const { agent } = await stage([call('open'), text('Done.')], {
      tools: [clientTool('open')],
      policy: decideAs('ask'),
    })
    const run = agent.run('Open.')
    const first = await run.result
    expect(first.pending).toMatchObject([{ needs: 'approval' }])
    run.approve(first.pending![0]!)
    const second = await run.result
    expect(second.pending).toMatchObject([{ needs: 'client' }])
    run.addToolOutput(second.pending![0]!, 'opened')
    expect((await run.result).state).toBe('COMPLETED')
  })
})

describe('a policy is evaluated again', () => {
  it('for arguments that a person edits, and can deny them', async () => {
    const decide = ({ arguments: { amount } }: PolicyCall): PolicyDecision =>
      amount > 100 ? { decision: 'deny', reason: 'Too much.' } : 'ask'
    for (const [amount, runs] of [
      [50, 1],
      [500, 0],
    ] as const) {
      const { run, result, paid, events } = await pay({ id: 'p', decide })
      run.approve(result.pending![0]!, { amount } as never)
      expect((await run.result).state).toBe('COMPLETED')
      expect(paid).toEqual(runs === 1 ? [{ amount }] : [])
      expect(events.filter(({ type }) => type === 'policy_decided')).toHaveLength(2)
    }
  })

  it('by no resume, replay or fork, which read the log', async () => {
    let requestCount = 0
    const policy: Policy = { id: 'p', decide: () => ((requestCount += 1), 'ask') }
    const { agent } = await pay(policy, {}, [call('pay', { amount: 5 }), text('Done.'), text('Done.')])
    const fork = await agent.fork('s')
    for (const id of ['s', fork]) {
      const run = await agent.resume(id)
      run.approve((await run.result).pending![0]!)
      expect((await run.result).state).toBe('COMPLETED')
    }
    expect(requestCount).toBe(1)
  })

  it('by a played session, which reports a changed decision', async () => {
    const { agent } = await pay(decideAs('allow'))
    const recording = await recordSession(agent, 's')
    const stricter = await stage([text('x')], {
      store: memoryStore(),
      tools: [tool('pay', () => 'paid')],
      policy: decideAs('deny'),
    })
    await expect(replaySession(stricter.agent as never, recording)).rejects.toThrow(
      'pay(amount: 5) ran without approval, and is denied by a policy now.',
    )
  })
})

describe('a policy also decides', () => {
  it('calls of sub-agents, with their path and the tags of the session', async () => {
    const paths: (readonly string[])[] = []
    const decide = ({ tool: { name }, path, requester, session }: PolicyCall): PolicyDecision => {
      paths.push([...path, name, requester?.id ?? '', session.tags['tenant'] ?? ''])
      return name === 'pay' ? 'deny' : 'allow'
    }
    const paid: unknown[] = []
    const below = await stage([call('pay'), text('Done.')], {
      tools: [tool('pay', (input) => paid.push(input))],
    })
    const clerk = below.agent.asTool({ name: 'clerk', description: 'Pays.' }) as never
    const { agent } = await stage([call('clerk', { task: 'Pay.' }), text('Done.')], {
      store: memoryStore(),
      tools: [clerk],
      policy: { id: 'p', decide },
    })
    expect((await agent.run('Go.', { session: 's', by: 'ann', tags: { tenant: 'acme' } }).result).state).toBe(
      'COMPLETED',
    )
    expect(paid).toEqual([])
    const { subAgents } = await replaySession(agent as never, await recordSession(agent, 's'))
    expect(subAgents).toHaveLength(1)
    expect(paths.splice(2)).toEqual(paths)
    expect(paths).toEqual([
      ['clerk', 'ann', 'acme'],
      ['clerk', 'pay', 'ann', 'acme'],
    ])
  })

  it('calls after a handoff', async () => {
    const paid: unknown[] = []
    const member = await stage([text('x')], { tools: [tool('pay', (input) => paid.push(input))] })
    const { agent } = await stage([call('transfer_to_clerk'), call('pay'), text('Done.')], {
      tools: [handoff(member.agent as never, { name: 'clerk', description: 'Pays.' })],
      policy: { id: 'p', decide: ({ tool: { name } }) => (name === 'pay' ? 'deny' : 'allow') },
    })
    await agent.run('Go.').result
    expect(paid).toEqual([])
  })
})

it('a page reads the reason for a question, but neither rules nor shadows', async () => {
  const { agent } = await stage([call('pay'), text('Done.')], {
    store: memoryStore(),
    tools: [tool('pay', () => 'paid')],
    policy: [
      decideAs({ decision: 'ask', rule: 'secret-rule', reason: 'Payments need a yes.' }),
      decideAs('deny', { id: 'secret-next', shadow: true }),
    ],
  })
  const handler = chatHandler({ agent, authorize: 'none' })
  const body = { id: 'c', messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] }] }
  const request = new Request('http://chat.test/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const streamed = await (await handler(request)).text()
  expect(streamed).toContain('Payments need a yes.')
  expect(streamed).not.toContain('secret')
})
