import { checkStore } from '../../src/testing/index.js'
import { Faults } from './faults.js'
import { connect } from './network.js'
import { SharedStore } from './shared-store.js'
import { type Life, World } from './world.js'

/** The connection from a process to the store without faults must satisfy the store contract. */
function open(now: () => number, plan: { releasesInAppend: boolean; renewsAll: boolean }) {
  const world = new World(1)
  Object.defineProperty(world, 'now', { get: now })
  const life: Life = { name: 'p1', isAlive: true, isPaused: false, held: [], working: new Map() }
  const faults = new Faults(world, [], { kill: () => undefined, pause: () => undefined })
  const shared = new SharedStore(world)
  return connect(world, life, { shared, faults, plan: { sync: true, slowest: 0, ...plan } })
}

test.each([
  { releasesInAppend: true, renewsAll: true },
  { releasesInAppend: false, renewsAll: false },
])(
  'the store of the simulation keeps the guarantees of stores: %j',
  async (plan) => {
    const { broken } = await checkStore(({ now }) => open(now, plan), { shared: false })
    expect(broken).toEqual([])
  },
  60_000,
)

test('it refuses like the store, and a dead process reaches nothing', () => {
  const world = new World(1)
  const life: Life = { name: 'p1', isAlive: true, isPaused: false, held: [], working: new Map() }
  const faults = new Faults(world, [], { kill: () => undefined, pause: () => undefined })
  const shared = new SharedStore(world)
  const plan = { sync: true, slowest: 0, releasesInAppend: true, renewsAll: true }
  const store = connect(world, life, { shared, faults, plan })
  void store.acquire('s', { holder: 'one', ttlMs: 30_000 })
  expect(() => store.acquire('s', { holder: 'two', ttlMs: 30_000 })).toThrow(
    expect.objectContaining({ code: 'session_busy' }),
  )
  life.isAlive = false
  expect(store.acquire('t', { holder: 'one', ttlMs: 30_000 })).toBeInstanceOf(Promise)
  expect(shared.grantOf('t')).toBeUndefined()
})
