import { createAgent, patternShield, type Policy, type Principal, type Run } from '../../src/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { fault, minute, start } from '../support/expiring.js'
import { filePlace } from '../stores/folder.js'
import { grantWorld, listAsked, obedient, pay, testSharedGrants } from '../support/granting.js'
import { tool } from '../support/tools.js'

const finance = (id: string): Principal => ({ id, roles: ['finance'] })

describe('a grant', () => {
  it('that comes with an approval covers later calls with the same arguments', async () => {
    const { order, rest, paid, store, listGrants } = grantWorld()
    const run = order([pay(1)])
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    const [question] = (await run.result).pending ?? []
    run.approve(question!, undefined, { by: 'bob', grant: {} })
    expect(await rest(run)).toBe('COMPLETED')
    const again = order([['pay', { to: 'acme', n: 1 }]])
    expect(await rest(again)).toBe('COMPLETED')
    expect([run.events, again.events]).toEqual([['approved c0', 'given'], ['granted c0']])
    expect(await rest(order([pay(2)]))).toBe('WAITING_FOR_INPUT')
    expect(paid).toHaveLength(2)
    expect(await listGrants()).toEqual([
      expect.objectContaining({ tool: 'pay', givers: [{ by: { id: 'bob' }, at: start }] }),
    ])
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('for arguments that shields have not screened needs limits', async () => {
    const shields = { toolInput: [patternShield({ patterns: [/4711/], action: 'block' })] }
    const { order, rest, paid, listGrants } = grantWorld({ shields })
    const run = order([pay(1)])
    await rest(run)
    const [question] = (await run.result).pending ?? []
    const edited = { n: 2, to: 'best' }
    expect(() => run.approve(question!, edited, { grant: {} })).toThrow(
      /grant for edited arguments needs when/,
    )
    run.approve(question!, edited, { grant: { when: edited } })
    expect(await rest(run)).toBe('COMPLETED')
    expect(await rest(order([pay(2, 'best')]))).toBe('COMPLETED')
    expect([paid, (await listGrants()).map(({ when }) => when)]).toEqual([[edited, edited], [edited]])
  })

  it('covers other arguments within its limits, in the same batch and in later runs', async () => {
    const { order, rest, paid, agent } = grantWorld()
    const run = order([pay(1), pay(2), pay(900), pay(3, 'zeta'), ['free']])
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    const { pending = [] } = await run.result
    const when = { to: ['acme', 'best'], n: { max: 500 } }
    await agent.send('s', { type: 'approve', ...pending[0]!, by: 'bob', grant: { when } })
    const resumed = (await agent.resume('s')) as Run
    expect(await rest(resumed)).toBe('WAITING_FOR_INPUT')
    expect(listAsked(await resumed.result)).toEqual(['c2', 'c3'])
    expect(paid).toHaveLength(2)
    for (const call of (await resumed.result).pending ?? []) resumed.reject(call)
    expect(await rest(resumed)).toBe('COMPLETED')
    expect(await rest(order([pay(500, 'best'), pay(1)]))).toBe('COMPLETED')
    expect(paid).toHaveLength(4)
  })

  it('can be given in advance, also while no run is under way', async () => {
    const { order, rest, paid, agent, listGrants, store } = grantWorld()
    expect(await rest(order([['free']]))).toBe('COMPLETED')
    const receipt = await agent.send('s', { type: 'grant', tool: 'pay', when: {}, uses: 2, by: 'bob' })
    expect(receipt.status).toBe('waiting')
    expect(await listGrants()).toEqual([])
    expect(await rest(order([pay(1)]))).toBe('COMPLETED')
    const run = order([pay(2), pay(3)])
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect(run.events).toEqual(['granted c0', 'used_up'])
    expect([paid, listAsked(await run.result)]).toEqual([[pay(1)[1], pay(2)[1]], ['c1']])
    await agent.send('s', { type: 'grant', tool: 'pay', when: { n: 3 }, by: 'bob' })
    expect(await rest((await agent.resume('s')) as Run)).toBe('COMPLETED')
    expect(paid).toHaveLength(3)
    expect((await listGrants()).map(({ when, uses }) => [when, uses])).toEqual([
      [{}, 0],
      [{ n: 3 }, undefined],
    ])
    expect(await store.inbox?.read('s')).toEqual([])
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('can be revoked, also before a run has read it', async () => {
    const { order, rest, paid, agent, listGrants } = grantWorld()
    const run = order([['free']])
    await rest(run)
    await agent.send('s', { type: 'grant', tool: 'pay', when: {} })
    await expect(agent.send('s', { type: 'revoke', grant: 'none' })).rejects.toThrow(fault('unknown_grant'))
    expect(await rest(order([pay(1)]))).toBe('COMPLETED')
    const [grant] = await listGrants()
    await agent.send('s', { type: 'revoke', grant: grant!.id, by: 'eve' })
    await expect(agent.send('s', { type: 'revoke', grant: grant!.id })).rejects.toThrow(
      fault('unknown_grant'),
    )
    const last = order([pay(1)])
    expect(await rest(last)).toBe('WAITING_FOR_INPUT')
    expect(last.events).toEqual(['revoked'])
    expect([await listGrants(), paid]).toEqual([[], [pay(1)[1]]])
  })

  it('is checked when its call starts, and not before', async () => {
    const { order, rest, paid, agent, hosts, listGrants, store } = grantWorld({
      takes: 10 * minute,
      toolCalls: { concurrency: 1 },
    })
    await rest(order([['free']]))
    await agent.send('s', { type: 'grant', tool: 'pay', when: {}, until: start + 15 * minute, uses: 9 })
    const run = order([pay(1), pay(2), pay(3)])
    await hosts.pass(minute)
    expect(paid).toHaveLength(1)
    await hosts.pass(30 * minute)
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect(paid).toHaveLength(2)
    expect(listAsked(await run.result)).toEqual(['c2'])
    expect((await listGrants()).map(({ uses }) => uses)).toEqual([7])
    run.reject((await run.result).pending![0]!)
    expect(await rest(run)).toBe('COMPLETED')
    const next = order([pay(4)])
    expect([await rest(next), next.events]).toEqual(['WAITING_FOR_INPUT', []])
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('that is revoked while its call waits for a free slot does not start it', async () => {
    const { order, rest, paid, hosts, listGrants, agent } = grantWorld({
      takes: 10 * minute,
      toolCalls: { concurrency: 1 },
    })
    await rest(order([['free']]))
    await agent.send('s', { type: 'grant', tool: 'pay', when: {} })
    const run = order([pay(1), pay(2)])
    await hosts.pass(minute)
    const [grant] = await listGrants()
    run.revoke({ grant: grant!.id }, { by: 'bob' })
    await hosts.pass(20 * minute)
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect([paid, run.events]).toEqual([[pay(1)[1]], ['given', 'granted c0', 'granted c1', 'revoked']])
    run.approve((await run.result).pending![0]!)
    await hosts.pass(20 * minute)
    expect(await rest(run)).toBe('COMPLETED')
  })

  it.each([0.5, 1.5, 2.5])('counts each use once if the process dies after %s payments', async (payments) => {
    const { order, rest, paid, agent, hosts, open, listGrants, store, host } = grantWorld({
      takes: minute,
      toolCalls: { concurrency: 1, onInterrupted: 'approval' },
    })
    await rest(order([['free']]))
    await agent.send('s', { type: 'grant', tool: 'pay', when: {}, uses: 3 })
    order([pay(1), pay(2), pay(3), pay(4)])
    await hosts.pass(payments * minute)
    host.kill()
    const other = open()
    await hosts.pass(minute)
    const run = (await other.agent.resume('s')) as Run
    // Calls that may have run, and the call that the grant does not cover, need a person.
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect((await listGrants()).map(({ uses }) => uses)).toEqual([0])
    expect(paid).toHaveLength(Math.ceil(payments))
    expect(listAsked(await run.result)).toHaveLength(4 - Math.floor(payments))
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('of a revoked grant does not start again in the next process', async () => {
    const { order, rest, paid, agent, hosts, open, listGrants, store, host } = grantWorld({
      takes: 10 * minute,
      tool: { idempotent: true },
      toolCalls: { concurrency: 1, onInterrupted: 'approval' },
    })
    await rest(order([['free']]))
    await agent.send('s', { type: 'grant', tool: 'pay', when: {} })
    const run = order([pay(1), pay(2)])
    await hosts.pass(minute)
    run.revoke({ grant: (await listGrants())[0]!.id })
    await hosts.settle()
    host.kill()
    const other = open()
    await hosts.pass(minute)
    const resumed = (await other.agent.resume('s')) as Run
    expect(await rest(resumed)).toBe('WAITING_FOR_INPUT')
    expect([paid, listAsked(await resumed.result)]).toEqual([[pay(1)[1]], ['c0', 'c1']])
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('is given by people who may approve each call', async () => {
    const policy: Policy = {
      id: 'p',
      decide: ({ arguments: { n } }) => ({
        decision: n === 9 ? 'deny' : 'ask',
        approvers: n > 1 ? { roles: ['finance'], count: 2, notRequester: true } : { roles: ['finance'] },
      }),
    }
    const { order, rest, paid, agent } = grantWorld({ policy, tool: { needsApproval: false } })
    const run = order([pay(2)])
    await rest(run)
    const [question] = (await run.result).pending ?? []
    const early = { by: finance('bob'), grant: { when: {} } }
    expect(() => run.approve(question!, undefined, early)).toThrow(fault('invalid_input'))
    run.approve(question!, undefined, { by: finance('bob') })
    run.approve(question!, undefined, { by: finance('cyd'), grant: { when: { n: { max: 5 } } } })
    expect(await rest(run)).toBe('COMPLETED')
    expect(await rest(order([pay(3)]))).toBe('COMPLETED')
    await agent.send('s', { type: 'grant', tool: 'pay', when: {}, by: finance('bob') })
    await agent.send('s', { type: 'grant', tool: 'pay', when: {}, by: 'dee' })
    const last = order([pay(1), pay(7), pay(9)])
    expect(await rest(last)).toBe('WAITING_FOR_INPUT')
    expect(listAsked(await last.result)).toEqual(['c1'])
    expect(paid).toHaveLength(3)
  })

  it('of a requester covers no call that requesters may not approve', async () => {
    const approvals = { approvers: { roles: ['finance'], notRequester: true } }
    const { order, rest, paid, agent } = grantWorld({ approvals })
    await rest(order([['free']]))
    await agent.send('s', { type: 'grant', tool: 'pay', when: { n: 1 }, by: finance('ann') })
    await agent.send('s', { type: 'grant', tool: 'pay', when: { n: 2 }, by: 'eve' })
    await agent.send('s', { type: 'grant', tool: 'pay', when: { n: 3 }, by: finance('bob') })
    const run = order([pay(1), pay(2), pay(3)])
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect([listAsked(await run.result), paid]).toEqual([['c0', 'c1'], [pay(3)[1]]])
  })

  it('does not cover a tool whose description or schema has changed', async () => {
    const { order, rest, paid, open, hosts } = grantWorld()
    const run = order([pay(1)])
    await rest(run)
    run.approve('c0', undefined, { grant: { when: {} } })
    await rest(run)
    const changed = open({
      tools: [
        {
          ...tool('pay', () => void paid.push('changed'), { needsApproval: true }),
          description: 'Pays twice.',
        },
      ],
    })
    const next = order([pay(1)], changed)
    expect(await rest(next)).toBe('WAITING_FOR_INPUT')
    expect(paid).toHaveLength(1)
    next.approve((await next.result).pending![0]!)
    await hosts.settle()
    expect(await rest(next)).toBe('COMPLETED')
    expect(await rest(order([pay(1)]))).toBe('COMPLETED')
  })

  it('is not part of a fork', async () => {
    const { order, rest, agent, paid } = grantWorld()
    const run = order([pay(1)])
    await rest(run)
    run.approve('c0', undefined, { grant: { when: {} } })
    await rest(run)
    const fork = await agent.fork('s')
    expect((await agent.replay(fork)).grants).toBeUndefined()
    const there = agent.run(JSON.stringify([pay(1)]), { session: fork })
    expect([(await there.result).state, paid]).toEqual(['WAITING_FOR_INPUT', [pay(1)[1]]])
  })

  it('that was revoked or used up does not return with a branch', async () => {
    const { order, rest, agent, paid, listGrants } = grantWorld()
    const run = order([pay(1)])
    await rest(run)
    run.approve('c0', undefined, { grant: { when: {}, uses: 1 } })
    run.grant({ tool: 'pay', when: { n: 2 } })
    await rest(run)
    const [once, always] = await listGrants()
    const branch = agent.branch('s', { from: 'm1' }) as Run
    expect(await rest(branch)).toBe('COMPLETED')
    await agent.send('s', { type: 'revoke', grant: always!.id })
    expect(await rest(order([['free']]))).toBe('COMPLETED')
    expect(await listGrants()).toEqual([expect.objectContaining({ id: once!.id, uses: 0 })])
    await agent.selectBranch('s', 1)
    expect(await listGrants()).toEqual([expect.objectContaining({ id: once!.id, uses: 0 })])
    expect(await rest(order([pay(1), pay(2)]))).toBe('WAITING_FOR_INPUT')
    expect(paid).toEqual([pay(1)[1], pay(1)[1]])
  })

  it('holds in a session without a store', async () => {
    const paid: unknown[] = []
    const agent = createAgent({
      model: obedient,
      tools: [tool('pay', (input) => void paid.push(input), { needsApproval: true })],
    })
    const run = agent.run(JSON.stringify([pay(1)]), { session: 's' })
    await run.result
    run.grant({ tool: 'pay', when: { n: { min: 1, max: 2 } } }, { by: 'bob' })
    expect((await run.result).state).toBe('COMPLETED')
    expect((await agent.run(JSON.stringify([pay(2)]), { session: 's' }).result).state).toBe('COMPLETED')
    expect(paid).toEqual([pay(1)[1], pay(2)[1]])
  })

  it.each([
    [{ when: 5 }, 'when'],
    [{ when: { n: { above: 3 } } }, 'when.n'],
    [{ when: { n: { min: 3, max: 2 } } }, 'when.n'],
    [{ when: { n: {} } }, 'when.n'],
    [{ when: { n: [[1]] } }, 'when.n'],
    [{ when: { n: () => 1 } }, 'when.n'],
    [{ when: { n: Number.NaN } }, 'when.n'],
    [{ until: start }, 'until'],
    [{ until: new Date(Number.NaN) }, 'until'],
    [{ uses: 0 }, 'uses'],
    [{ uses: 1.5 }, 'uses'],
    [{ forever: true }, 'forever'],
    ['always', 'grant'],
  ])('%j is refused, and the call still waits', async (grant, key) => {
    const { order, rest, agent, store } = grantWorld()
    const run = order([pay(1)])
    await rest(run)
    const [question] = (await run.result).pending ?? []
    const before = (await store.read('s')).length
    const refused = expect.objectContaining({ code: 'invalid_input', subject: key })
    expect(() => run.approve(question!, undefined, { grant: grant as never })).toThrow(refused)
    await expect(agent.send('s', { type: 'approve', ...question!, grant: grant as never })).rejects.toThrow(
      fault('invalid_input'),
    )
    expect([run.state, (await store.read('s')).length, await store.inbox?.read('s')]).toEqual([
      'WAITING_FOR_INPUT',
      before,
      [],
    ])
  })

  it.each([
    [null, 'tool'],
    [{ when: {} }, 'tool'],
    [{ tool: 'pay' }, 'when'],
    [{ tool: 'pay', when: {}, forever: true }, 'forever'],
  ])('without a call, %j is refused', async (grant, key) => {
    const { order, rest } = grantWorld()
    const run = order([pay(1)])
    await rest(run)
    expect(() => run.grant(grant as never)).toThrow(
      expect.objectContaining({ code: 'invalid_input', subject: key }),
    )
    expect(() => run.revoke(null as never)).toThrow(fault('invalid_input'))
  })
})

describe('revoking an approval', () => {
  it('asks again while the call has not started, and only for the sender', async () => {
    const { order, rest, paid, hosts, store } = grantWorld()
    const run = order([pay(1), pay(2)])
    await rest(run)
    const [one, two] = (await run.result).pending ?? []
    run.approve(one!, undefined, { by: 'bob' })
    await hosts.settle()
    expect(() => run.revoke(one!, { by: 'eve' })).toThrow(fault('unknown_call'))
    expect(() => run.revoke(two!, { by: 'bob' })).toThrow(fault('unknown_call'))
    run.revoke(one!, { by: 'bob' })
    await hosts.settle()
    run.approve(two!, undefined, { by: 'bob' })
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect(listAsked(await run.result)).toEqual(['c0'])
    run.approve(one!, undefined, { by: 'eve' })
    expect(await rest(run)).toBe('COMPLETED')
    expect(run.events).toEqual(['approved c0', 'revoked c0', 'approved c1', 'approved c0'])
    expect(paid).toHaveLength(2)
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('leaves the call to people, although an older grant covers it', async () => {
    const { order, rest, paid, hosts, store, agent } = grantWorld()
    const run = order([pay(1), pay(2)])
    await rest(run)
    const [one] = (await run.result).pending ?? []
    run.approve(one!, undefined, { by: 'bob' })
    run.grant({ tool: 'pay', when: { n: 1 } }, { by: 'bob' })
    run.revoke(one!, { by: 'bob' })
    await hosts.settle()
    run.grant({ tool: 'pay', when: { n: 2 } }, { by: 'bob' })
    expect(await rest(run)).toBe('WAITING_FOR_INPUT')
    expect([listAsked(await run.result), paid]).toEqual([['c0'], [pay(2)[1]]])
    const fork = await hosts.until(agent.fork('s'))
    await agent.send(fork, { type: 'grant', tool: 'pay', when: {}, by: 'bob' })
    expect(await rest((await hosts.until(agent.resume(fork))) as Run)).toBe('COMPLETED')
    run.approve(one!, undefined, { by: 'cyd' })
    expect(await rest(run)).toBe('COMPLETED')
    expect(checkSessionLog(await store.read('s'))).toBeNull()
  })

  it('takes one of several approvals back', async () => {
    const policy: Policy = { id: 'p', decide: () => ({ decision: 'ask', approvers: { count: 2 } }) }
    const { order, rest, paid, hosts } = grantWorld({ policy })
    const run = order([pay(1)])
    await rest(run)
    const [question] = (await run.result).pending ?? []
    run.approve(question!, undefined, { by: 'bob' })
    run.revoke(question!, { by: 'bob' })
    await hosts.settle()
    expect((await run.result).pending).toEqual([question])
    run.approve(question!, undefined, { by: 'cyd' })
    await hosts.settle()
    expect(paid).toEqual([])
    run.approve(question!, undefined, { by: 'bob' })
    expect(await rest(run)).toBe('COMPLETED')
  })

  it('cannot stop a call that has started', async () => {
    const { order, rest, hosts } = grantWorld({ takes: minute })
    const run = order([pay(1)])
    await rest(run)
    run.approve('c0', undefined, { by: 'bob' })
    await hosts.settle()
    expect(() => run.revoke('c0', { by: 'bob' })).toThrow(fault('unknown_call'))
  })
})

describe('grants in a SQLite file', () => {
  testSharedGrants(filePlace)
})
