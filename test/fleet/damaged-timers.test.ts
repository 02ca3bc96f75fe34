import { createAgent, defineAgents, memoryStore } from '../../src/index.js'
import { createScheduler, listSchedules } from '../../src/fleet/index.js'
import { createOneCallModel } from '../support/manual-model.js'
import { tool } from '../support/tools.js'
import { Hosts } from './host-clocks.js'

const start = Date.parse('2026-05-04T06:00:00Z')
const sound = {
  agent: 'a',
  recurrence: { everyMs: 60_000 },
  input: 'Go.',
  tags: {},
  catchUp: 'one',
  anchor: start,
}
const damagedSchedules = [
  'garbage',
  'null',
  '[]',
  '{}',
  ...[1e300, -1e300, 1e17, 0.5, null].map((anchor) => JSON.stringify({ ...sound, anchor })),
  ...[-1, 0, 1e300, 0.5].map((everyMs) => JSON.stringify({ ...sound, recurrence: { everyMs } })),
  JSON.stringify({ ...sound, tags: 7 }),
  JSON.stringify({ ...sound, input: 7 }),
]

test('timers that cannot be read are reported once and skipped, and the others fire', async () => {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const host = hosts.start(shared, () => 0)
  const agent = createAgent({
    model: createOneCallModel('look'),
    tools: [tool('look')],
    store: host.store,
    clock: host.clock,
  })
  const reported: string[] = []
  const scheduler = createScheduler(defineAgents({ a: agent }), {
    clock: host.clock,
    pollMs: 5000,
    onError: (error, at) => reported.push(`${(error as { code: string }).code} ${at.schedule ?? at.session}`),
  })
  shared.timers.set([
    ...damagedSchedules.map((data, i) => ({ id: `schedule:bad-${i}`, at: start, data })),
    { id: 'firing:bad', at: start, data: '{' },
    { id: 'wake:bad', at: start, data: 'no' },
    { id: 'schedule:good', at: start, data: JSON.stringify(sound) },
  ])
  scheduler.start()
  await hosts.pass(150_000)
  const firings = shared.list().map(({ id, summary }) => [id.split('@')[0], summary?.state])
  expect(firings).toEqual([
    ['good', 'COMPLETED'],
    ['good', 'COMPLETED'],
    ['good', 'COMPLETED'],
  ])
  expect(reported.toSorted()).toEqual(
    [...damagedSchedules.map((_, i) => `bad-${i}`), 'bad', 'bad'].map((id) => `corrupt_log ${id}`).toSorted(),
  )
  expect((await listSchedules(shared)).map(({ id }) => id)).toEqual(['good'])
})
