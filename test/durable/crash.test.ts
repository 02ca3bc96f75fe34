import fc from 'fast-check'
import { fromPromise } from 'xstate'
import { memoryStore } from '../../src/index.js'
import { durable, idempotencyKey } from '../../src/durable/index.js'
import type { LogRecord } from '../../src/stores/index.js'
import { sampled } from '../support/extent.js'
import { type Host, Hosts } from '../fleet/host-clocks.js'
import { Bank, claimMachine } from './claim.js'

const start = Date.parse('2026-05-04T06:00:00Z')

interface Plan {
  /** The writes at which the working process dies: before the store has the records, or before it learns of it. */
  kills: { at: number; isWritten: boolean }[]
  notes: number
  /** The failures of the bank before it pays. */
  failures: number
}

/** Plays a claim with two senders, and with processes that die after writes. Other processes take over. */
async function play({ kills, notes, failures }: Plan) {
  const hosts = new Hosts(start)
  const shared = memoryStore({ now: () => hosts.now })
  const bank = new Bank()
  const errors: unknown[] = []
  const left = [...kills]
  let refusals = failures
  let writes = 0

  const open = () => {
    const host: Host = hosts.start(shared)
    /** Counts the writes of this process, and ends it after the planned one. */
    const store = new Proxy(host.store, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (key !== 'append') return value
        return async (...args: unknown[]) => {
          writes += 1
          const [kill] = left
          const isLast = kill !== undefined && writes >= kill.at
          if (isLast) {
            left.shift()
            writes = 0
          }
          const answer =
            isLast && !kill.isWritten
              ? undefined
              : await Reflect.apply(value as (...a: unknown[]) => Promise<unknown>, target, args)
          if (!isLast) return answer
          host.kill()
          return new Promise(() => undefined)
        }
      },
    })
    const claims = durable(claimMachine, {
      store: store as never,
      clock: host.clock,
      once: ['pay'],
      onError: (error) => errors.push(error),
      actors: {
        pay: fromPromise<string, { amount: number }>(async ({ input, self }) => {
          if (host.isDead) return new Promise(() => undefined)
          if (refusals > 0) {
            refusals -= 1
            throw new Error('The bank is closed.')
          }
          const paid = bank.pay(idempotencyKey(self), input.amount)
          await Promise.resolve()
          return paid
        }),
        askBank: fromPromise<string | null, { claim: string }>(async () =>
          bank.payments.length > 0 ? 'p1' : null,
        ),
      },
    })
    const worker = claims.worker()
    return { host, claims, worker }
  }

  let working = open()
  // A process that dies before the session is stored leaves nothing, so the next one starts it.
  while (shared.get('c') === null) {
    if (working.host.isDead) working = open()
    working.claims.start('c', { input: { amount: 900 } }).catch(() => undefined)
    for (let i = 0; i < 40 && shared.get('c') === null && !working.host.isDead; i += 1) await hosts.pass(1000)
  }
  const deliver = async (event: Parameters<typeof working.claims.send>[1], key: string): Promise<void> => {
    // A sender whose process dies sends the event again, with the same key.
    for (let i = 0; i < 20; i += 1) {
      if (working.host.isDead) working = open()
      const sent = { is: false }
      working.claims.send('c', event, { key }).then(
        () => (sent.is = true),
        () => (sent.is = true),
      )
      for (let t = 0; t < 10 && !sent.is; t += 1) await hosts.pass(500)
      if (sent.is) return
    }
  }
  for (let n = 0; n < notes; n += 1) await deliver({ type: 'NOTE', text: String(n) }, `note-${n}`)
  await deliver({ type: 'APPROVE', by: 'ann' }, 'approve')
  for (let i = 0; i < 30 && shared.get('c')?.summary?.state !== 'COMPLETED'; i += 1) {
    if (working.host.isDead) working = open()
    await hosts.pass(31_000)
  }
  const records: LogRecord[] = shared.read('c')
  const last = JSON.parse(records.at(-1)?.data ?? '{}')
  const events = records.map(({ data }) => JSON.parse(data).event)
  return { last, taken: events, bank, errors, kills: kills.length - left.length }
}

test('a process may die after any write: no one is paid twice, and no event is lost or accepted twice', async () => {
  const { last: expected } = await play({ kills: [], notes: 3, failures: 0 })
  expect(expected.state).toMatchObject({
    status: 'done',
    value: 'paid',
    context: { notes: ['0', '1', '2'], payment: 'p1' },
  })
  for (let i = 0; i < 18; i += 1) {
    const at = Math.ceil((i + 1) / 2)
    const {
      last,
      taken: events,
      bank,
    } = await play({
      kills: [{ at, isWritten: i % 2 === 0 }],
      notes: 3,
      failures: 0,
    })
    expect([at, bank.payments.length]).toEqual([at, 1])
    expect(
      events
        .filter(({ type }: { type: string }) => type === 'NOTE')
        .map(({ text }: { text: string }) => text),
    ).toEqual(['0', '1', '2'])
    expect(last.state.context).toEqual(expected.state.context)
    expect(last.state.value).toBe('paid')
  }
})

test('any series of crashes leads to the end without crashes', async () => {
  const plans = fc.record({
    kills: fc.array(fc.record({ at: fc.integer({ min: 1, max: 6 }), isWritten: fc.boolean() }), {
      maxLength: 5,
    }),
    notes: fc.nat({ max: 5 }),
    failures: fc.nat({ max: 1 }),
  })
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const { last, taken: events, bank } = await play(plan)
      expect(last.state.value).toBe('paid')
      expect(bank.payments).toHaveLength(1)
      const notes = Array.from({ length: plan.notes }, (_, n) => String(n))
      expect(last.state.context.notes).toEqual(notes)
      expect(events.filter(({ type }: { type: string }) => type === 'APPROVE')).toHaveLength(1)
    }),
    { numRuns: sampled(200) },
  )
})
