import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { jest } from '@jest/globals'
import { fromPromise } from 'xstate'
import { durable, idempotencyKey } from '../../src/durable/index.js'
import type { SessionStore } from '../../src/index.js'
import { Bank, claimMachine } from '../durable/claim.js'
import { tallyMachine } from '../durable/tally.js'
import { sampled } from '../support/extent.js'
import { postgresPlace, url } from './place.js'

jest.setTimeout(240_000)

const place = postgresPlace()
const stores: SessionStore[] = []
/** Added to the time of the stores that are opened from here on. */
let skew = 0

const open = (): SessionStore => {
  const ahead = skew
  const store = place.open(() => Date.now() + ahead) as SessionStore
  stores.push(store)
  return store
}

afterAll(async () => {
  for (const store of stores) await store.close()
  await place.remove()
})

test('two processes send events to one machine in Postgres, and each is accepted once and in order', async () => {
  const [first, second] = [open(), open()].map((store) => durable(tallyMachine, { store }))
  const each = sampled(500)
  await first?.start('t')
  const sendAll = async (sessions: typeof first, from: string): Promise<void> => {
    for (let n = 1; n <= each; n += 1)
      await sessions?.send('t', { type: 'COUNT', from, n }, { key: from + n })
  }
  await Promise.all([sendAll(first, 'a'), sendAll(second, 'b')])
  // Both processes look, because either of them may hold the session.
  for (;;) {
    const settled = await first?.settled('t')
    const { a, b } = settled?.context.last ?? {}
    if (a === each && b === each) {
      expect(settled?.context.faults).toBe(0)
      return
    }
  }
})

test('another process continues a claim in Postgres, without a second payment', async () => {
  const bank = new Bank()
  const openClaims = (pay: (key: string, amount: number) => Promise<string>) =>
    durable(claimMachine, {
      store: open(),
      once: ['pay'],
      onError: () => undefined,
      actors: {
        pay: fromPromise<string, { amount: number }>(({ input, self }) =>
          pay(idempotencyKey(self), input.amount),
        ),
        askBank: fromPromise<string | null, { claim: string }>(async () =>
          bank.payments.length > 0 ? 'p1' : null,
        ),
      },
    })
  let begun: () => void = () => undefined
  const paying = new Promise<void>((resolve) => (begun = resolve))
  const first = openClaims((key, amount) => {
    bank.pay(key, amount)
    begun()
    // The process is gone before it stores the outcome.
    return new Promise(() => undefined)
  })
  await first.start('c', { input: { amount: 900 } })
  await first.send('c', { type: 'APPROVE', by: 'ann' })
  await paying
  skew = 60_000
  const second = openClaims(async (key, amount) => bank.pay(key, amount))
  expect(await second.settled('c')).toMatchObject({ value: 'paid', context: { payment: 'p1' } })
  expect(bank.payments).toEqual([{ key: 'c:pay.2', amount: 900 }])
})

test('processes are killed around each record of a claim in Postgres: it is paid once, and its end is the same', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['test/crash/claim.mjs', url])
  expect(stdout).toMatch(/^\d\d claims, \d\d kills, 0 wrong$/m)
})
