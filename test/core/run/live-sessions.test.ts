import { memoryStore } from '../../../src/index.js'
import { systemClock } from '../../../src/core/base/clock.js'
import { findLiveSession, publishSession } from '../../../src/core/run/live-sessions.js'
import { leaseMs } from '../../../src/core/sessions/log/lease.js'
import { createOpening } from '../../../src/core/sessions/log/create-records.js'
import { openSession } from '../../../src/core/sessions/open-session.js'
import { distant } from '../../support/distant.js'

test('the late response to a write does not show a run again whose session another run holds', async () => {
  let now = 1_000
  let respond = (): void => undefined
  const held = new Promise<void>((resolve) => (respond = resolve))
  let delay = Promise.resolve()
  const near = memoryStore({ now: () => now })
  const store = distant(near, undefined, () => delay)
  const publish = async (runId: string) => {
    const { log } = await openSession(store, 's', { clock: systemClock, holder: runId })
    publishSession(log, { runId, actor: {} as never, hub: {} as never })
    return log
  }
  const first = await publish('first')
  first.write(createOpening(first.facts, undefined))
  delay = held
  const written = first.flush()
  while (near.read('s').length === 0) await new Promise(setImmediate)
  delay = Promise.resolve()
  now += leaseMs + 1
  const second = await publish('second')
  respond()
  await written
  expect(findLiveSession(store, 's')?.runId).toBe('second')
  await first.close()
  expect(findLiveSession(store, 's')?.runId).toBe('second')
  await second.close()
  expect(findLiveSession(store, 's')).toBeUndefined()
})
