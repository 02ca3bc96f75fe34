import * as fc from 'fast-check'
import { createAgent, defineAgents, memoryStore, type SessionStore } from '../../src/index.js'
import { createScheduler, listSchedules, schedule, unschedule } from '../../src/fleet/index.js'
import type { ScheduleOptions } from '../../src/fleet/index.js'
import { checkSessionLog } from '../../src/testing/index.js'
import { longTest } from '../support/extent.js'
import { createOneCallModel } from '../support/manual-model.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import { tool } from '../support/tools.js'
import { type Host, Hosts } from './host-clocks.js'

const start = Date.parse('2026-05-04T06:00:00Z')
const [minute, hour] = [60_000, 3_600_000]

const model = createOneCallModel('send')

/** The agents of one process; `sent` hears the session of each effect. */
function makeAgents(store: SessionStore, clock: Host['clock'] | undefined, sent: (session: string) => void) {
  const send = tool('send', (_input, { sessionId }) => {
    sent(sessionId)
    return 'sent'
  })
  const reporter = createAgent({ model, store, tools: [send], ...(clock && { clock }) })
  return defineAgents({ reporter })
}

function setUp() {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const sent: string[] = []
  const open = (skew: () => number = () => 0) => {
    const host = hosts.start(shared, skew)
    const errors: unknown[] = []
    const agents = makeAgents(host.store, host.clock, (session) => {
      if (!host.isDead) sent.push(session)
    })
    const options = { clock: host.clock, pollMs: 5000, onError: (error: unknown) => errors.push(error) }
    return { host, agents, scheduler: createScheduler(agents, options), errors }
  }
  return { hosts, shared, sent, open }
}

describe('what is refused names its key', () => {
  const agents = makeAgents(memoryStore(), undefined, () => undefined)
  test.each<[string, Partial<Record<keyof ScheduleOptions | 'when', unknown>>, string]>([
    ['no time', {}, 'cron'],
    ['two kinds of times', { cron: '* * * * *', everyMs: 5000 }, 'cron'],
    ['a pattern that is none', { cron: 'daily' }, 'cron'],
    ['a pattern without a time to come', { cron: '0 0 30 2 *' }, 'cron'],
    ['a time zone that is none', { cron: '* * * * *', timezone: 'Mars/Base' }, 'timezone'],
    ['half a second', { everyMs: 500 }, 'everyMs'],
    ['NaN', { everyMs: Number.NaN }, 'everyMs'],
    ['an id with a slash', { everyMs: 5000, id: 'a/b' }, 'id'],
    ['an id that is too long', { everyMs: 5000, id: 'a'.repeat(151) }, 'id'],
    ['no input', { everyMs: 5000, input: undefined }, 'input'],
    ['too much input', { everyMs: 5000, input: 'x'.repeat(100_001) }, 'input'],
    ['an agent that is not there', { everyMs: 5000, agent: 'other' }, 'agent'],
    ['tags that are none', { everyMs: 5000, tags: { a: 1 } }, 'tags'],
    ['an unknown way to catch up', { everyMs: 5000, catchUp: 'some' }, 'catchUp'],
    ['an unknown option', { everyMs: 5000, when: 'now' }, 'when'],
  ])('%s', async (_name, options, subject) => {
    const asked = { id: 'report', input: 'Go.', ...options } as unknown as ScheduleOptions
    await expect(schedule(agents, asked)).rejects.toMatchObject({ subject })
  })

  test('a store that keeps no timers', async () => {
    const { timers: _timers, ...store } = memoryStore()
    const poor = makeAgents(store, undefined, () => undefined)
    await expect(schedule(poor, { id: 'a', everyMs: 5000, input: 'Go.' })).rejects.toMatchObject({
      code: 'no_timers',
    })
    expect(() => createScheduler(poor)).toThrow(expect.objectContaining({ code: 'no_timers' }))
  })
})

test('a schedule is stored once, replaced by another one, and removed', async () => {
  const { hosts, shared, open } = setUp()
  const { agents } = open()
  const options = { id: 'report', everyMs: hour, input: 'Go.' }
  const first = await schedule(agents, options)
  expect(first).toEqual({
    id: 'report',
    agent: 'reporter',
    everyMs: hour,
    catchUp: 'one',
    nextAt: start + hour,
  })
  await hosts.pass(10 * minute)
  expect(await schedule(agents, options)).toEqual(first)
  const other = await schedule(agents, { ...options, everyMs: 2 * hour })
  expect(other.nextAt).toBe(hosts.now + 2 * hour)
  expect(await listSchedules(shared)).toEqual([other])
  const strangers = defineAgents({ stranger: createAgent({ model, store: memoryStore() }) })
  expect(await listSchedules(shared, strangers)).toEqual([{ ...other, stranded: true }])
  expect(await unschedule(agents, 'report')).toBe(true)
  expect(await unschedule(agents, 'report')).toBe(false)
  expect(await listSchedules(shared)).toEqual([])
})

test('each time begins one session, named by the schedule and the time, and tagged', async () => {
  const { hosts, shared, sent, open } = setUp()
  const { agents, host, errors } = open()
  const scheduler = createScheduler(agents, { clock: host.clock, pollMs: 5 * minute })
  const input = [{ type: 'text' as const, text: 'Write the report.' }]
  await schedule(agents, {
    id: 'daily',
    cron: '30 8 * * *',
    timezone: 'Europe/Berlin',
    input,
    tags: { user: 'ann' },
  })
  scheduler.start()
  await hosts.pass(25 * hour)
  const sessions = ['daily@2026-05-04T06:30:00Z', 'daily@2026-05-05T06:30:00Z']
  expect(sent).toEqual(sessions)
  const listed = shared.list({ tags: { schedule: 'daily', user: 'ann' } })
  expect(listed.map(({ id, summary }) => [id, summary?.state, summary?.title])).toEqual([
    [sessions[1], 'COMPLETED', 'Write the report.'],
    [sessions[0], 'COMPLETED', 'Write the report.'],
  ])
  await scheduler.stop()
  expect(scheduler.active).toBe(0)
  expect(shared.timers.list({ prefix: 'firing:', limit: 10 })).toEqual([])
  expect(errors).toEqual([])
})

test.each([
  ['one', ['2026-05-04T11:00:00Z']],
  ['all', [7, 8, 9, 10, 11].map((at) => `2026-05-04T${String(at).padStart(2, '0')}:00:00Z`)],
  ['none', ['2026-05-04T11:00:00Z']],
] as const)('what came due while no process ran is made up for: %s', async (catchUp, times) => {
  const { hosts, sent, open } = setUp()
  const { agents, scheduler } = open()
  await schedule(agents, { id: 'hourly', everyMs: hour, input: 'Go.', catchUp })
  // Half a minute after the fifth of them.
  await hosts.pass(5 * hour + minute / 2)
  scheduler.start()
  await hosts.pass(5000)
  expect([...sent].sort()).toEqual(times.map((time) => `hourly@${time}`))
  await hosts.pass(hour)
  expect(sent).toHaveLength(times.length + 1)
})

test.each([
  ['one', { everyMs: minute }, ['06T06:20:00']],
  ['none', { everyMs: minute }, ['06T06:19:00', '06T06:20:00']],
  ['one', { cron: '* * * * *' }, ['06T06:20:00']],
  // The last of 3,600 of that hour.
  ['one', { cron: '* * 3 * * *' }, ['06T03:59:59']],
  ['none', { cron: '* * 3 * * *' }, []],
] as const)('of thousands of missed times, %s fires the right ones: %p', async (catchUp, when, times) => {
  const { hosts, shared, sent, open } = setUp()
  const { agents, scheduler } = open()
  await schedule(agents, { id: 'often', ...when, input: 'Go.', catchUp })
  // Days in which no process runs.
  hosts.now = Date.parse('2026-05-06T06:20:00Z')
  scheduler.start()
  await hosts.pass(5000)
  expect([...sent].sort()).toEqual(times.map((time) => `often@2026-05-${time}Z`))
  const [listed] = await listSchedules(shared)
  expect(listed?.nextAt).toBeGreaterThan(hosts.now - 5000)
})

test('clocks that change skip no day and double none', async () => {
  const hosts = new Hosts(Date.parse('2026-03-27T12:00:00Z'))
  const shared = memoryStore({ now: () => hosts.now })
  const sent: string[] = []
  const host = hosts.start(shared)
  const agents = makeAgents(host.store, host.clock, (session) => sent.push(session))
  const scheduler = createScheduler(agents, { clock: host.clock, pollMs: 5 * minute })
  const options = { cron: '30 2 * * *', timezone: 'Europe/Berlin', input: 'Go.' }
  await schedule(agents, { id: 'night', ...options })
  scheduler.start()
  await hosts.pass(72 * hour)
  await scheduler.stop()
  // 02:30 does not exist on the 29th: it comes at 03:00 of that day.
  expect(sent).toEqual(['28T01:30', '29T01:00', '30T00:30'].map((time) => `night@2026-03-${time}:00Z`))
  hosts.now = Date.parse('2026-10-24T12:00:00Z')
  const other = createScheduler(agents, { clock: host.clock, pollMs: 5 * minute })
  await schedule(agents, { id: 'autumn', ...options })
  sent.length = 0
  other.start()
  await hosts.pass(48 * hour)
  // It exists twice on the 25th, and fires at the first of them.
  expect(sent.filter((id) => id.startsWith('autumn'))).toEqual(
    ['25T00:30', '26T01:30'].map((time) => `autumn@2026-10-${time}:00Z`),
  )
})

test('a schedule of an agent that is not here fires nothing, and keeps no other from firing', async () => {
  const { hosts, shared, sent, open } = setUp()
  const { agents, scheduler } = open()
  const strange = {
    agent: 'gone',
    recurrence: { everyMs: 1000 },
    input: 'Go.',
    tags: {},
    catchUp: 'all',
    anchor: start,
  }
  const data = JSON.stringify(strange)
  // More than one page of them, and damaged ones, come before.
  shared.timers.set(Array.from({ length: 450 }, (_, i) => ({ id: `schedule:x${i}`, at: start, data })))
  shared.timers.set([
    { id: 'schedule:damaged', at: start, data: '{"agent":' },
    { id: 'firing:damaged', at: start, data: '[]' },
    { id: 'unknown:kind', at: start, data: '' },
  ])
  await schedule(agents, { id: 'mine', everyMs: minute, input: 'Go.' })
  scheduler.start()
  await hosts.pass(2 * minute + 6000)
  expect(sent).toHaveLength(2)
  expect(shared.timers.get('schedule:x0')?.at).toBe(start)
})

test('a firing that fails is tried again, and an error is told with its place', async () => {
  const { hosts, open } = setUp()
  const { host, agents } = open()
  const told: unknown[] = []
  let failures = 2
  const asked: string[] = []
  const scheduler = createScheduler(agents, {
    clock: host.clock,
    pollMs: 5000,
    run: ({ session }) => {
      asked.push(session)
      failures -= 1
      return failures >= 0 ? Promise.reject(new Error('The queue is away.')) : Promise.resolve()
    },
    onError: (error, at) => {
      told.push([(error as Error).message, at])
      throw new Error('A listener that fails.')
    },
  })
  await schedule(agents, { id: 'report', everyMs: hour, input: 'Go.' })
  scheduler.start()
  await hosts.pass(hour + 2 * minute)
  const session = 'report@2026-05-04T07:00:00Z'
  expect(asked).toEqual([session, session, session])
  const place = { session, schedule: 'report' }
  expect(told).toEqual([
    ['The queue is away.', place],
    ['The queue is away.', place],
  ])
})

test('an outage of the store is told, and the schedules go on after it', async () => {
  const { hosts, shared, sent, open } = setUp()
  const { agents, host } = open()
  const errors: unknown[] = []
  let isAway = false
  const { listDue } = shared.timers
  shared.timers.listDue = (options) => {
    if (isAway) throw new Error('away')
    return listDue(options)
  }
  const scheduler = createScheduler(agents, {
    clock: host.clock,
    pollMs: 5000,
    onError: (error) => errors.push(error),
  })
  await schedule(agents, { id: 'report', everyMs: hour, input: 'Go.' })
  scheduler.start()
  isAway = true
  await hosts.pass(hour + 20_000)
  expect(sent).toEqual([])
  expect(errors.length).toBeGreaterThan(3)
  isAway = false
  await hosts.pass(6000)
  expect(sent).toEqual(['report@2026-05-04T07:00:00Z'])
})

test('a process runs so many firings at once, and takes up the others when these have ended', async () => {
  const { hosts, open } = setUp()
  const { agents, host } = open()
  const ends: (() => void)[] = []
  let most = 0
  const scheduler = createScheduler(agents, {
    clock: host.clock,
    pollMs: 5000,
    concurrency: 2,
    run: () => new Promise((resolve) => void ends.push(resolve)),
  })
  for (let i = 0; i < 5; i += 1) await schedule(agents, { id: `s${i}`, everyMs: hour, input: 'Go.' })
  scheduler.start()
  await hosts.pass(hour + 10_000)
  expect([ends.length, scheduler.active]).toEqual([2, 2])
  for (let begun = 0; begun < 5; begun += 1) {
    ends[begun]?.()
    most = Math.max(most, scheduler.active)
    await hosts.pass(5000)
  }
  expect([ends.length, most, scheduler.active]).toEqual([5, 2, 0])
})

test('the tools of a firing receive the context of its session', async () => {
  const hosts = new Hosts(start)
  const host = hosts.start(memoryStore({ now: () => hosts.now }))
  const received: unknown[] = []
  const send = tool('send', (_input, { context }) => void received.push(context))
  const reporter = createAgent({ model, store: host.store, clock: host.clock, tools: [send] })
  const agents = defineAgents({ reporter })
  const context = (session: string) => ({ user: session.split('@')[0] })
  const scheduler = createScheduler(agents, { clock: host.clock, pollMs: 5000, context })
  await schedule(agents, { id: 'ann', everyMs: hour, input: 'Go.' })
  scheduler.start()
  await hosts.pass(hour + 6000)
  expect(received).toEqual([{ user: 'ann' }])
  expect(() => createScheduler(agents, { context: {} as never })).toThrow(
    /context of createScheduler is a function/,
  )
})

test('a scheduler that is stopped leaves its firing where another process continues it at once', async () => {
  const { hosts, shared, sent, open } = setUp()
  const host = hosts.start(shared)
  let isAsked = false
  const hanging: ModelProvider = {
    ...model,
    request: (_request, { signal }) =>
      new Promise((_resolve, reject) => {
        isAsked = true
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      }),
  }
  const reporter = createAgent({
    model: hanging,
    store: host.store,
    clock: host.clock,
    tools: [tool('send')],
  })
  const agents = defineAgents({ reporter })
  const scheduler = createScheduler(agents, { clock: host.clock, pollMs: 5000, drainMs: 0 })
  await schedule(agents, { id: 'report', everyMs: hour, input: 'Go.' })
  scheduler.start()
  await hosts.pass(hour + 6000)
  expect(isAsked).toBe(true)
  await scheduler.stop()
  const next = open()
  next.scheduler.start()
  await hosts.pass(0)
  await hosts.settleUntil(() => sent.length > 0)
  expect(sent).toEqual(['report@2026-05-04T07:00:00Z'])
})

test('a schedule that is removed fires no more, and the session that it has begun goes on', async () => {
  const { hosts, shared, sent, open } = setUp()
  const first = open()
  await schedule(first.agents, { id: 'report', everyMs: hour, input: 'Go.' })
  first.scheduler.start()
  await hosts.pass(hour - 1)
  // It is killed as soon as it has begun the firing.
  const { move } = shared.timers
  shared.timers.move = (step) => {
    const moved = move(step)
    if (step.id.startsWith('firing:')) first.host.kill()
    return moved
  }
  await hosts.pass(10_000)
  shared.timers.move = move
  const second = open()
  expect(await unschedule(second.agents, 'report')).toBe(true)
  second.scheduler.start()
  await hosts.pass(2 * hour)
  expect(sent).toEqual(['report@2026-05-04T07:00:00Z'])
})

longTest(
  'processes that are killed at any moment, and whose clocks differ, begin each firing exactly once',
  async () => {
    const moment = fc.record({
      after: fc.integer({ min: 0, max: 20_000 }),
      which: fc.nat(3),
      skew: fc.integer({ min: -hour, max: hour }),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(moment, { maxLength: 8 }),
        fc.integer({ min: 1, max: 30 }),
        async (kills, count) => {
          const { hosts, shared, sent, open } = setUp()
          const crew = [open(), open(() => minute), open(() => -minute), open(() => hour)]
          for (let i = 0; i < count; i += 1)
            await schedule((crew[0] as (typeof crew)[0]).agents, {
              id: `s${i}`,
              everyMs: 10_000 + 137 * i,
              input: 'Go.',
              catchUp: 'all',
            })
          for (const { scheduler } of crew) scheduler.start()
          for (const { after, which, skew } of kills) {
            await hosts.pass(after)
            crew[which]?.host.kill()
            const next = open(() => skew)
            next.scheduler.start()
            crew[which] = next
          }
          const end = hosts.now
          // Long enough for leases and firings of dead processes to run out.
          await hosts.pass(3 * minute)
          const wanted = Array.from({ length: count }, (_, i) => {
            const every = 10_000 + 137 * i
            return Array.from(
              { length: Math.floor((end - start) / every) },
              (_one, n) => `s${i}@${iso(start + (n + 1) * every)}`,
            )
          }).flat()
          const sessions = new Set(shared.list().map(({ id }) => id))
          for (const id of wanted) expect(sessions).toContain(id)
          expect(new Set(sent).size).toBe(sent.length)
          const listed = shared.list()
          for (const { id, summary, updatedAt } of listed)
            if (updatedAt < hosts.now - 2 * minute) expect([id, summary?.state]).toEqual([id, 'COMPLETED'])
          for (const { id } of listed.slice(0, 20)) expect(checkSessionLog(shared.read(id))).toBeNull()
        },
      ),
      { numRuns: 15 },
    )
  },
  120_000,
)

const iso = (at: number): string => new Date(at).toISOString().replace('.000Z', 'Z')
