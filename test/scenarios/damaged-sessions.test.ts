import { readdirSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { createAgent, memoryStore, StatewrightError } from '../../src/index.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'
import { damaged, damages, forged } from '../support/damaged-logs.js'
import { ManualModel } from '../support/manual-model.js'
import { sampled } from '../support/extent.js'

const folder = new URL('../fixtures/sessions/0.2.0/', import.meta.url)
const logs = readdirSync(folder).flatMap((file) => {
  const { sessions } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as StoredCase
  return Object.values(sessions).flatMap((records) => [records.slice(0, -1), records])
})

test('an impossible log is reported with one of our errors', async () => {
  let refused = 0
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: logs.length - 1 }), fc.nat(), damages, async (which, place, damage) => {
      const log = logs[which] ?? []
      const index = place % log.length
      const records = log.map((record, i) =>
        i === index ? forged(record, (value) => damaged(value, damage)) : record,
      )
      const clock = new SimulatedClock()
      const store = memoryStore({ now: () => clock.now() })
      const lease = store.acquire('s', { holder: 'the test', ttlMs: 1_000 })
      store.append(lease, records)
      store.release(lease)
      const agent = createAgent({ model: new ManualModel(), store, clock })
      const reported = async (work: () => Promise<unknown>, others: readonly string[] = []) => {
        try {
          await work()
        } catch (error) {
          if (!(error instanceof StatewrightError)) throw error
          expect(['corrupt_log', 'newer_log', 'unknown_state', ...others]).toContain(error.code)
          refused++
        }
      }
      await reported(() => agent.replay('s'))
      await reported(async () => {
        const run = await agent.resume('s')
        run.cancel()
        await run.result
        // Only the parent can resume a sub-agent's session.
      }, ['stranded'])
      // A call may wait for a sub-agent that has no session.
      await reported(() => agent.fork('s'), ['nothing_to_resume'])
      expect(store.get('s')?.holder).toBeNull()
    }),
    { numRuns: sampled(150) },
  )
  expect(refused).toBeGreaterThan(sampled(10))
})

test.each([
  ['a section of the configuration that is null', (start: object) => withIn(start, 'context', null)],
  ['a version that is not a number', (start: object) => ({ ...start, version: { toString: '' } })],
  ['a tool that has no traits', (start: object) => withIn(start, 'tools', { pay: null })],
])('%s is reported as damage', async (_what, change) => {
  const store = memoryStore()
  const lease = store.acquire('s', { holder: 'the test', ttlMs: 1_000 })
  const records = logs[0] ?? []
  store.append(
    lease,
    records.map((one) => (one.type === 'start' ? forged(one, (value) => change(value as object)) : one)),
  )
  store.release(lease)
  const resumed = createAgent({ model: new ManualModel(), store }).resume('s')
  await expect(resumed).rejects.toMatchObject({ code: 'corrupt_log' })
})

/** Replaces the value of this key everywhere. */
function withIn(value: object, key: string, by: unknown): object {
  return JSON.parse(JSON.stringify(value, (at, inner: unknown) => (at === key ? by : inner))) as object
}
