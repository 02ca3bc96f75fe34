import fc from 'fast-check'
import {
  createAgent,
  defineAgents,
  memoryStore,
  runSession,
  sleepUntil,
  systemClock,
} from '../../src/index.js'
import { createWaker } from '../../src/fleet/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import { createOneCallModel } from '../support/manual-model.js'
import { sampled } from '../support/extent.js'
import { tool } from '../support/tools.js'
import { type Host, Hosts } from './host-clocks.js'

const start = Date.parse('2026-05-04T06:00:00Z')
const [minute, hour] = [60_000, 3_600_000]

const model = createOneCallModel('rest')

function setUp() {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const requests: { at: number; by: string }[] = []
  /** A process whose clock is ahead by `skew` milliseconds. */
  const open = (by: string, skew = 0) => {
    const host: Host = hosts.start(shared, () => skew)
    const errors: unknown[] = []
    const counted: ModelProvider = {
      ...model,
      request: (request, options) => {
        if (!host.isDead) requests.push({ at: hosts.now, by })
        return model.request(request, options)
      },
    }
    const rest = tool('rest', () => sleepUntil(start + hour))
    const sleeper = createAgent({ model: counted, store: host.store, tools: [rest], clock: host.clock })
    const agents = defineAgents({ sleeper })
    const waker = createWaker(agents, {
      clock: host.clock,
      pollMs: 5000,
      onError: (error) => errors.push(error),
    })
    return { host, agent: sleeper, agents, waker, errors }
  }
  const stateOf = (id: string) => {
    const { state, reason, wakeAt } = shared.get(id)?.summary ?? {}
    return { state, reason, ...(wakeAt !== undefined && { wakeAt }) }
  }
  return { hosts, shared, requests, open, stateOf }
}

const asleep = { state: 'PAUSED', reason: 'sleeping', wakeAt: start + hour }
const timersOf = (shared: ReturnType<typeof memoryStore>) => shared.timers.list({ prefix: '', limit: 10 })

test('a run sleeps, its row has the wake time, and a waker wakes it when it is due', async () => {
  const { hosts, shared, requests, open, stateOf } = setUp()
  const { agent, waker, errors } = open('one')
  waker.start()
  const run = agent.run('Go.', { session: 's' })
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  expect(await run.result).toMatchObject(asleep)
  expect(stateOf('s')).toEqual(asleep)
  await hosts.pass(hour - minute)
  expect(stateOf('s')).toEqual(asleep)
  await hosts.pass(2 * minute)
  expect(stateOf('s')).toEqual({ state: 'COMPLETED', reason: 'end_turn' })
  expect(requests).toHaveLength(2)
  expect(timersOf(shared)).toEqual([])
  expect(errors).toEqual([])
  expect(checkSessionLog(shared.read('s'))).toBeNull()
})

test.each([
  ['in step', [0, 0, 0]],
  ['that differ by a minute', [-minute, 0, minute]],
  ['that are all late', [-minute, -minute, -minute]],
])('of several processes with clocks %s, one wakes it, once', async (_, skews) => {
  const { hosts, shared, requests, open, stateOf } = setUp()
  const processes = skews.map((skew, i) => open(String(i), skew))
  const first = processes[0]?.agent.run('Go.', { session: 's' })
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  await first?.result
  for (const { waker } of processes) waker.start()
  await hosts.pass(hour + 3 * minute)
  expect(stateOf('s').state).toBe('COMPLETED')
  expect(requests).toHaveLength(2)
  const woken = (requests[1]?.at ?? 0) - start - hour
  expect(Math.abs(woken)).toBeLessThanOrEqual(minute + 10_000)
  expect(timersOf(shared)).toEqual([])
  expect(processes.flatMap(({ errors }) => errors)).toEqual([])
})

test('a sleeping run that is read repeatedly, with a message for its next turn, is woken when it is due', async () => {
  const { hosts, requests, open, stateOf } = setUp()
  const { agent, agents, waker } = open('one')
  void agent.run('Go.', { session: 's' }).result
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  await agent.send('s', { type: 'message', when: 'next', input: 'And then?' })
  waker.start()
  for (let i = 0; i < 7; i += 1) {
    void runSession(agents, { session: 's' })
    await hosts.pass(10 * minute)
  }
  expect(stateOf('s').state).toBe('COMPLETED')
  expect(requests[1]?.at).toBeLessThanOrEqual(start + hour + minute)
})

test('processes whose clocks are ahead read grants of a sleeping run, and the run is not woken early', async () => {
  const { hosts, shared, requests, open, stateOf } = setUp()
  const [first, ahead] = [open('first'), open('ahead', 20 * minute)]
  void first.agent.run('Go.', { session: 's' }).result
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  for (const left of [50, 40, 30]) {
    const { head } = shared.get('s') ?? {}
    await first.agent.send('s', { type: 'grant', tool: 'rest', when: {} })
    await hosts.pass(10 * minute)
    const read = runSession(ahead.agents, { session: 's' })
    await hosts.settleUntil(() => shared.get('s')?.head !== head)
    expect(await read).toMatchObject({ state: 'PAUSED', wakeMs: left * minute })
  }
  first.waker.start()
  await hosts.pass(29 * minute)
  expect(stateOf('s').state).toBe('PAUSED')
  await hosts.pass(2 * minute)
  expect(stateOf('s').state).toBe('COMPLETED')
  expect((requests[1]?.at ?? 0) - start).toBeGreaterThanOrEqual(hour)
})

test('a waker whose store leaves one request unanswered retries', async () => {
  const { hosts, shared, open, stateOf } = setUp()
  const { agent, waker, errors } = open('one')
  const { listDue } = shared.timers
  let questions = 0
  shared.timers.listDue = (options) => {
    questions += 1
    return questions === 2 ? (new Promise(() => undefined) as never) : listDue(options)
  }
  waker.start()
  void agent.run('Go.', { session: 's' }).result
  await hosts.pass(hour + minute)
  expect(stateOf('s').state).toBe('COMPLETED')
  expect(errors).toEqual([
    expect.objectContaining({ code: 'store_unavailable', message: expect.stringContaining('listDue') }),
  ])
})

test('a process dies as the run falls asleep, and another one wakes it', async () => {
  const { hosts, shared, requests, open, stateOf } = setUp()
  const { agent, host } = open('first')
  void agent.run('Go.', { session: 's' }).result.catch(() => undefined)
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  host.kill()
  await hosts.pass(2 * hour)
  expect(stateOf('s')).toEqual(asleep)
  const other = open('second')
  other.waker.start()
  await hosts.pass(minute)
  expect(stateOf('s').state).toBe('COMPLETED')
  expect(requests.map(({ by }) => by)).toEqual(['first', 'second'])
  expect(timersOf(shared)).toEqual([])
})

test('runSession leaves a run asleep before its wake time, and wakes it afterwards', async () => {
  const { hosts, shared, requests, open } = setUp()
  const { agent } = open('one')
  const drive = async (options: { input?: string } = {}) => {
    const driven = runSession(agent, { session: 's', ...options })
    let isOver = false
    void driven.finally(() => (isOver = true))
    await hosts.settleUntil(() => isOver)
    return driven
  }
  expect(await drive({ input: 'Go.' })).toMatchObject({ ...asleep, wakeMs: hour })
  const { head } = shared.get('s') ?? {}
  await hosts.pass(hour - 1)
  expect(await drive()).toMatchObject({ ...asleep, wakeMs: 1, head })
  await hosts.pass(1)
  expect(await drive()).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  expect(requests).toHaveLength(2)
})

test('a fork of a sleeping run stays asleep until it is resumed', async () => {
  const { hosts, shared, requests, open, stateOf } = setUp()
  const { agent, waker, errors } = open('one')
  void agent.run('Go.', { session: 's' }).result
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  const forks: string[] = []
  const fork = async (options?: { askFirst: true }) => {
    forks.push(await agent.fork('s', undefined, options))
  }
  void fork()
  void fork({ askFirst: true })
  await hosts.settleUntil(() => forks.length === 2)
  expect(forks.map(stateOf)).toEqual([asleep, asleep])
  waker.start()
  await hosts.pass(2 * hour)
  expect(stateOf('s').state).toBe('COMPLETED')
  expect(forks.map(stateOf)).toEqual([asleep, asleep])
  expect(timersOf(shared)).toEqual([])
  const [resumed = ''] = forks
  await agent.send(resumed, { type: 'resume' })
  // The first call of send() loads code, and the run needs its timers.
  while (stateOf(resumed).state !== 'COMPLETED') await hosts.pass(minute)
  expect(requests).toHaveLength(3)
  expect(errors).toEqual([])
})

test('deleting a session deletes its alarm, and an orphaned alarm is removed silently', async () => {
  const { hosts, shared, requests, open, stateOf } = setUp()
  const { agent, waker, errors } = open('one')
  for (const session of ['ann:a', 'ann:b', 'ben']) void agent.run('Go.', { session }).result
  await hosts.settleUntil(() => ['ann:a', 'ann:b', 'ben'].every((id) => stateOf(id).state === 'PAUSED'))
  shared.timers.set([{ id: 'wake:gone', at: start + hour, data: '{}' }])
  let deleted = 0
  const forget = async () => {
    await agent.deleteSession('ann:a')
    deleted = 1 + (await agent.deleteSessions({ prefix: 'ann' }))
  }
  void forget()
  await hosts.settleUntil(() => deleted === 2)
  expect(timersOf(shared).map(({ id }) => id)).toEqual(['wake:ben', 'wake:gone'])
  waker.start()
  await hosts.pass(2 * hour)
  expect(stateOf('ben').state).toBe('COMPLETED')
  expect(timersOf(shared)).toEqual([])
  expect([errors, requests.length]).toEqual([[], 4])
})

test('a damaged alarm is reported once and skipped, and other sessions wake', async () => {
  const { hosts, shared, open, stateOf } = setUp()
  const { agent, waker, errors } = open('one')
  void agent.run('Go.', { session: 's' }).result
  await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
  shared.timers.set([
    { id: 'wake:bad', at: start, data: 'no' },
    { id: 'other:one', at: start, data: 'no' },
  ])
  waker.start()
  await hosts.pass(2 * hour)
  expect(stateOf('s').state).toBe('COMPLETED')
  expect(errors).toEqual([expect.objectContaining({ code: 'corrupt_log', subject: 'wake:bad' })])
  expect(timersOf(shared).map(({ id }) => id)).toEqual(['other:one', 'wake:bad'])
})

/** The operations on sleeping sessions. A number selects the session or fork. */
const deed = fc.oneof(
  fc.record({ type: fc.constantFrom('fork', 'askFirst', 'resume', 'delete'), at: fc.nat(5) }),
  fc.record({ type: fc.constant('pass'), at: fc.nat(90) }),
)

test('random forks, resumes and deletions: a fork works only after a resume, and a deleted session leaves no timer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { minLength: 3, maxLength: 12 }), async (deeds) => {
      const { hosts, shared, open, stateOf } = setUp()
      const { agent, waker, errors } = open('one')
      const sessions = ['s']
      const resumed = new Set(['s'])
      const deleted = new Set<string>()
      const until = async (work: Promise<unknown>) => {
        let isOver = false
        const end = () => {
          isOver = true
        }
        void work.then(end, end)
        await hosts.settleUntil(() => isOver)
      }
      void agent.run('Go.', { session: 's' }).result
      await hosts.settleUntil(() => stateOf('s').state === 'PAUSED')
      waker.start()
      for (const { type, at } of deeds) {
        const id = sessions[at % sessions.length] ?? 's'
        const fork = async () => {
          sessions.push(await agent.fork(id, undefined, type === 'askFirst' ? { askFirst: true } : undefined))
        }
        if (type === 'pass') await hosts.pass(at * minute)
        else if (type === 'delete') {
          deleted.add(id)
          await until(agent.deleteSession(id))
        } else if (type === 'resume') {
          if (stateOf(id).state === 'PAUSED') resumed.add(id)
          await until(agent.send(id, { type: 'resume' }))
        } else if (!deleted.has(id)) await until(fork())
      }
      await hosts.pass(3 * hour)
      for (const id of sessions) {
        const expected = deleted.has(id) ? undefined : resumed.has(id) ? 'COMPLETED' : 'PAUSED'
        // A fork of an ended session keeps the conversation, but has nothing to resume.
        if (expected !== 'PAUSED' || stateOf(id).state === 'PAUSED')
          expect([id, stateOf(id).state]).toEqual([id, expected])
        else expect(shared.read(id)).toHaveLength(2)
      }
      expect(timersOf(shared)).toEqual([])
      expect(errors).toEqual([])
      await until(waker.stop())
    }),
    { numRuns: sampled(30) },
  )
})

test('a run is not woken before its time by a slow process, whose clocks start one after the other', async () => {
  const store = memoryStore()
  const rest = tool('rest', () => sleepUntil(start + hour))
  const play = (session: string, now: number, slowReadings: number) => {
    let [readings, passed] = [0, 0]
    // Time passes at the first readings, so a clock that starts later is behind an earlier one.
    const elapsed = (): number => (passed += readings++ < slowReadings ? 10 : 0)
    const clock = { ...systemClock, now: () => now, elapsed }
    const agent = createAgent({ model, store, tools: [rest], clock })
    return runSession(agent, { session, input: 'Go.' })
  }
  const woken: number[] = []
  for (const slowReadings of [2, 3, 4, 5, 6, 7, 8]) {
    const id = `${slowReadings}`
    expect(await play(id, start, 0)).toMatchObject({ state: 'PAUSED' })
    await play(id, start + hour - 10, slowReadings)
    for (const { data } of store.read(id)) {
      const { event } = JSON.parse(data) as { event?: { type: string; now: number } }
      if (event?.type === 'RESUME') woken.push(event.now)
    }
  }
  expect(woken.length).toBeGreaterThan(0)
  expect(woken.filter((at) => at < start + hour)).toEqual([])
})
