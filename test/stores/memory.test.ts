import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { describeStore } from './conformance.js'
import { leaseRequest, createRecord } from './support.js'

describeStore(
  'the store in memory',
  () => ({ open: (now) => memoryStore(now ? { now } : {}), remove: () => undefined }),
  {
    shared: false,
    lacks: ['the store has no renewAll', 'the store has no purge', 'the inbox has no findUnread'],
  },
)

test('the store in memory keeps records by reference', () => {
  const store = memoryStore()
  const stored = createRecord(1)
  store.append(store.acquire('s', leaseRequest), [stored])
  expect(store.read('s')[0]).toBe(stored)
  store.read('s').length = 0
  expect(store.read('s')).toHaveLength(1)
})
