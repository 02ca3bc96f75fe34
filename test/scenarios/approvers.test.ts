import fc from 'fast-check'
import {
  type Approvers,
  createAgent,
  memoryStore,
  openaiChat,
  type Policy,
  type Principal,
  type Run,
  runSession,
} from '../../src/index.js'
import { addApproval } from '../../machines/agent/approvals.js'
import { aguiHandler } from '../../src/agui/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { sampled } from '../support/extent.js'

const twoOfFinance: Approvers = { roles: ['finance'], count: 2, notRequester: true }
const ask = (approvers: unknown): Policy =>
  ({ id: 'p', decide: () => ({ decision: 'ask', approvers }) }) as unknown as Policy
const finance = (id: string): Principal => ({ id, roles: ['finance'] })

/** A run that asks about one call of `pay`. */
async function asking(approvers: unknown, by: string | undefined = 'ann') {
  const store = memoryStore()
  const paid: unknown[] = []
  const { agent } = await stage([call('pay', { n: 1 }), text('Paid.'), text('Paid.')], {
    store,
    tools: [tool('pay', (input) => void paid.push(input))],
    policy: ask(approvers),
  })
  const run = agent.run('Pay.', { session: 's', ...(by !== undefined && { by }) })
  const { pending = [] } = await run.result
  return { agent, run: run as Run, store, paid, question: pending[0]! }
}

const fault = (code: string) => expect.objectContaining({ code })

describe('approvers', () => {
  it('can be two people of finance, other than the requester', async () => {
    const { agent, run, store, paid, question } = await asking(twoOfFinance)
    expect(question.approvers).toEqual([twoOfFinance])
    const before = store.read('s').length
    const refused: [Principal | undefined, string][] = [
      [undefined, 'not_an_approver'],
      [{ id: 'eve' }, 'not_an_approver'],
      [{ id: 'eve', roles: ['sales'] }, 'not_an_approver'],
      [finance('ann'), 'not_an_approver'],
    ]
    for (const [by, code] of refused) {
      expect(() => run.approve(question, undefined, { by })).toThrow(fault(code))
      await expect(agent.send('s', { type: 'approve', ...question, by })).rejects.toThrow(fault(code))
    }
    expect([store.read('s').length, store.inbox?.read('s')]).toEqual([before, []])
    run.approve(question, undefined, { by: finance('bob'), why: 'Fine.' })
    const { pending = [] } = await run.result
    expect(pending[0]).toMatchObject({ approvals: [{ by: finance('bob'), why: 'Fine.' }] })
    expect(() => run.approve(question, undefined, { by: finance('bob') })).toThrow(fault('already_answered'))
    expect(() => run.approve(question, { n: 2 } as never, { by: finance('cyd') })).toThrow(
      fault('not_an_approver'),
    )
    expect(paid).toEqual([])
    run.approve(question, undefined, { by: finance('cyd') })
    expect([(await run.result).state, paid]).toEqual(['COMPLETED', [{ n: 1 }]])
  })

  it('can approve in any process: approvals add up across resumes', async () => {
    const { agent, paid, question } = await asking({ count: 3 })
    for (const id of ['bob', 'cyd', 'dee']) {
      expect(paid).toEqual([])
      await agent.send('s', { type: 'approve', ...question, by: id })
      await (await agent.resume('s')).result
    }
    expect(paid).toEqual([{ n: 1 }])
  })

  it.each([
    ['plain', undefined, 1],
    ['with edited arguments', { edit: { call: 'call_1_1', arguments: { n: 2 } } }, 2],
    ['with other instructions', { edit: { instructions: 'Be brief.' } }, 1],
    ['that asks first', { askFirst: true }, 1],
  ] as const)('must vote again in a fork %s', async (_, options, n) => {
    const { agent, run, paid, question } = await asking({ count: 2 })
    run.approve(question, undefined, { by: 'bob' })
    await run.result
    const fork = (await agent.resume(await agent.fork('s', undefined, options as never))) as Run
    for (const by of ['cyd', 'bob']) {
      const { pending = [] } = await fork.result
      expect([pending.length, paid]).toEqual([1, []])
      fork.approve(pending[0]!, undefined, { by })
    }
    expect([(await fork.result).state, paid]).toEqual(['COMPLETED', [{ n }]])
    run.approve(question, undefined, { by: 'cyd' })
    expect([(await run.result).state, paid]).toEqual(['COMPLETED', [{ n }, { n: 1 }]])
  })

  it('of outdated arguments do not count in a fork', async () => {
    const store = memoryStore()
    const { agent } = await stage([call('pay', { n: 1 }), text('Paid.')], {
      store,
      tools: [tool('pay')],
      policy: {
        id: 'p',
        decide: (question) =>
          question.arguments.n === 1 ? { decision: 'ask', approvers: { count: 2 } } : 'allow',
      } as Policy,
    })
    const run = agent.run('Pay.', { session: 's' })
    const { pending = [] } = await run.result
    for (const by of ['bob', 'cyd']) run.approve(pending[0]!, undefined, { by })
    await run.result
    const approved = store.read('s').findLast(({ data }) => data.includes('"APPROVE"'))!.seq
    const edit = { call: pending[0]!.callId, arguments: { n: 2 } }
    const forks = [await agent.fork('s', approved), await agent.fork('s', approved, { edit })]
    const haveVotes = forks.map((id) => store.read(id).some(({ data }) => data.includes('"approvals"')))
    expect(haveVotes).toEqual([true, false])
  })

  it('can be named by id; one may reject, and so may the requester', async () => {
    for (const by of ['bob', 'ann']) {
      const { run, paid, question } = await asking({ ids: ['bob', 'ann'], notRequester: true })
      expect(() => run.reject(question, 'No.', { by: 'eve' })).toThrow(fault('not_an_approver'))
      run.reject(question, 'No.', { by })
      expect([(await run.result).state, paid]).toEqual(['COMPLETED', []])
    }
  })

  it('lose their votes when an approver edits alone', () => {
    const [bob, cyd] = [
      { by: finance('bob'), at: 2 },
      { by: finance('cyd'), at: 1 },
    ]
    expect(addApproval({ approvals: [cyd] }, bob, true)).toEqual([bob])
    expect(addApproval({ approvals: [cyd] }, bob, false)).toEqual([cyd, bob])
  })

  it('treat a person who has steered the run as a requester', async () => {
    const { run, question } = await asking({ notRequester: true })
    run.steer('To this account instead.', { by: 'bob' })
    expect(() => run.approve(question, undefined, { by: 'bob' })).toThrow(fault('not_an_approver'))
    run.approve(question, undefined, { by: 'cyd' })
    expect((await run.result).state).toBe('COMPLETED')
  })

  it('can answer for a sub-agent, whose question keeps its rules', async () => {
    const paid: unknown[] = []
    const below = await stage([call('pay'), text('Paid.')], {
      tools: [tool('pay', (input) => void paid.push(input), { needsApproval: true })],
    })
    const { agent } = await stage([call('clerk', { task: 'Pay.' }), text('Done.')], {
      store: memoryStore(),
      tools: [below.agent.asTool({ name: 'clerk', description: 'Pays.' }) as never],
      approvals: { approvers: twoOfFinance },
    })
    const run = agent.run('Go.', { by: 'ann' })
    const { pending = [] } = await run.result
    expect(pending[0]).toMatchObject({ path: ['clerk'], approvers: [twoOfFinance] })
    expect(() => run.approve(pending[0]!, undefined, { by: finance('ann') })).toThrow(
      fault('not_an_approver'),
    )
    run.approve(pending[0]!, undefined, { by: finance('bob') })
    const { sessionId } = await run.result
    const fork = (await agent.resume(await agent.fork(sessionId))) as Run
    expect((await fork.result).pending?.[0]).not.toHaveProperty('approvals')
    fork.approve(pending[0]!, undefined, { by: finance('cyd') })
    expect([(await fork.result).state, paid]).toEqual(['WAITING_FOR_INPUT', []])
    fork.cancel()
    await fork.result
    run.approve(pending[0]!, undefined, { by: finance('cyd') })
    expect([(await run.result).state, paid.length]).toEqual(['COMPLETED', 1])
  })

  it('add up exactly by the rules, for any people and order', async () => {
    const person = fc.record({
      id: fc.constantFrom('ann', 'bob', 'cyd', 'dee'),
      roles: fc.subarray(['finance', 'sales']),
    })
    const terms = fc.record(
      {
        ids: fc.subarray(['ann', 'bob'], { minLength: 1 }),
        roles: fc.subarray(['finance', 'legal'], { minLength: 1 }),
        count: fc.integer({ min: 1, max: 3 }),
        notRequester: fc.boolean(),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(terms, fc.array(person, { maxLength: 6 }), async (input, people) => {
        const { ids, roles, count = 1, notRequester } = input
        fc.pre(!(ids && !roles && count > ids.length))
        const { run, paid, question } = await asking(input)
        const counted = new Set<string>()
        for (const by of people) {
          if (counted.size >= count) break
          const suits =
            (!ids && !roles) || ids?.includes(by.id) || by.roles.some((role) => roles?.includes(role))
          const counts = suits && !(notRequester && by.id === 'ann') && !counted.has(by.id)
          let hasCounted = true
          try {
            run.approve(question, undefined, { by })
          } catch {
            hasCounted = false
          }
          expect(hasCounted).toBe(counts)
          if (counts) counted.add(by.id)
          await run.result
        }
        expect(paid.length).toBe(counted.size >= count ? 1 : 0)
      }),
      { numRuns: sampled(25) },
    )
  })

  it.each([
    [{ count: 0 }],
    [{ count: 1.5 }],
    [{ count: 101 }],
    [{ ids: [] }],
    [{ ids: ['bob'], count: 2 }],
    [{ ids: 'bob' }],
    [{ roles: [''] }],
    [{ notRequester: 1 }],
    [{ people: ['bob'] }],
    ['bob'],
    [null],
  ])('that match no person are refused: %j', async (approvers) => {
    const model = openaiChat({ model: 'm', apiKey: 'none' })
    expect(() => createAgent({ model, approvals: { approvers: approvers as never } })).toThrow(
      expect.objectContaining({ code: 'invalid_config', subject: 'approvals.approvers' }),
    )
    const { agent } = await stage([call('pay'), text('Done.')], {
      store: memoryStore(),
      tools: [tool('pay', () => 'paid')],
      policy: ask(approvers),
    })
    const result = await agent.run('Pay.', { by: 'ann' }).result
    expect(result.messages.at(-2)).toMatchObject({ data: { status: 'denied' } })
  })

  it('other than the requester need a known requester', async () => {
    const { agent } = await stage([call('pay'), text('Done.')], {
      tools: [tool('pay', () => 'paid', { needsApproval: true })],
      approvals: { approvers: { notRequester: true } },
    })
    await expect(agent.run('Pay.').result).rejects.toThrow(fault('invalid_input'))
    const decided = await stage([call('pay'), text('Done.')], {
      tools: [tool('pay', () => 'paid')],
      policy: ask({ notRequester: true }),
    })
    const result = await decided.agent.run('Pay.').result
    expect(result.messages.at(-2)).toMatchObject({ data: { status: 'denied' } })
  })
})

describe('a message without an author, whose approvers need one', () => {
  const open = async (store = memoryStore()) => {
    const { agent } = await stage([text('One.'), call('pay'), text('Done.')], {
      store,
      tools: [tool('pay', () => 'paid', { needsApproval: true })],
      approvals: { approvers: { notRequester: true } },
    })
    await agent.run('One?', { session: 's', by: 'ann' }).result
    return { agent, store }
  }

  it('cannot be queued', async () => {
    const { agent } = await open()
    const message = { type: 'message', when: 'next', input: 'Pay.' } as const
    await expect(agent.send('s', message)).rejects.toThrow(fault('invalid_input'))
    expect(await agent.send('s', { ...message, by: 'ann' })).toMatchObject({ status: 'waiting' })
  })

  it('does not block the queue, and nobody can approve its calls', async () => {
    const { agent, store } = await open()
    store.inbox.put('s', '{"type":"MESSAGE","messageId":"k","messages":[{"content":"Pay."}]}')
    await runSession(agent, { session: 's' })
    const [question] = (await agent.replay('s')).run?.pending ?? []
    if (!question) throw new Error('It asks nothing.')
    const approval = { type: 'approve', ...question, by: 'bob' } as const
    await expect(agent.send('s', approval)).rejects.toThrow(fault('not_an_approver'))
    await agent.send('s', { type: 'reject', ...question, by: 'bob' })
    expect((await runSession(agent, { session: 's' })).state).toBe('COMPLETED')
  })

  it('can call a sub-agent, and nobody can approve the calls of that sub-agent', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { agent: child } = await stage([call('pay'), text('Done.')], { tools: [pay] })
    const store = memoryStore()
    const { agent } = await stage([text('One.'), call('clerk', { task: 'Pay.' }), text('Done.')], {
      store,
      tools: [child.asTool({ name: 'clerk', description: 'Pays.' })],
      approvals: { approvers: { notRequester: true } },
    })
    await agent.run('One?', { session: 's', by: 'ann' }).result
    store.inbox.put('s', '{"type":"MESSAGE","messageId":"k","messages":[{"content":"Pay."}]}')
    await runSession(agent, { session: 's' })
    const [question] = (await agent.replay('s')).run?.pending ?? []
    if (!question) throw new Error('It asks nothing.')
    const approval = { type: 'approve', ...question, by: 'bob' } as const
    await expect(agent.send('s', approval)).rejects.toThrow(fault('not_an_approver'))
  })
})

describe('the page of a person who may not approve', () => {
  it('receives 403, and nothing changes', async () => {
    const { agent, store, question, paid } = await asking(twoOfFinance)
    const before = [store.read('s').length, store.inbox?.read('s')]
    const open = chatHandler({ agent, authorize: 'none' })
    const approval = {
      id: `${question.callId}~${question.messageId}~${question.fingerprint}`,
      approved: true,
    }
    const part = {
      type: 'tool-pay',
      toolCallId: question.callId,
      state: 'approval-responded',
      input: {},
      approval,
    }
    const response = await open(
      new Request('http://chat.test/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 's', messages: [{ id: 'a', role: 'assistant', parts: [part] }] }),
      }),
    )
    expect([response.status, (await response.json()).error.code]).toEqual([403, 'not_an_approver'])
    const agui = aguiHandler({ agent, authorize: 'none' })
    const { interrupts } = await (await agui(new Request('http://chat.test/api/agui/s'))).json()
    const resume = [{ interruptId: interrupts[0].id, status: 'resolved', payload: { approved: true } }]
    const other = await agui(
      new Request('http://chat.test/api/agui', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ threadId: 's', runId: 'r', messages: [], resume }),
      }),
    )
    expect(other.status).toBe(403)
    expect([store.read('s').length, store.inbox?.read('s')]).toEqual(before)
    expect(paid).toEqual([])
  })
})
