import { assign, fromPromise, setup } from 'xstate'
import { idempotencyKey } from '../../src/durable/index.js'

/** A bank that outlives the processes. A payment with a known key is not made again. */
export class Bank {
  readonly payments: { key: string; amount: number }[] = []

  pay(key: string, amount: number): string {
    this.payments.push({ key, amount })
    return `p${this.payments.length}`
  }

  find(key: string): string | null {
    const place = this.payments.findIndex((one) => one.key === key)
    return place < 0 ? null : `p${place + 1}`
  }
}

export interface ClaimInput {
  amount: number
}

type ClaimEvent =
  | { type: 'APPROVE'; by: string }
  | { type: 'REJECT'; why: string }
  | { type: 'NOTE'; text: string }
  | { type: 'STAMP' }
  | { type: 'BREAK' }

export const day = 86_400_000

export const claimMachine = setup({
  types: {
    input: {} as ClaimInput,
    context: {} as {
      amount: number
      notes: string[]
      payment: string | null
      tries: number
      by: string | null
      stamp?: unknown
    },
    events: {} as ClaimEvent,
    output: {} as { payment: string | null },
  },
  actors: {
    pay: fromPromise<string, { amount: number; claim: string }>(() =>
      Promise.reject(new Error('Not provided.')),
    ),
    askBank: fromPromise<string | null, { claim: string }>(() => Promise.reject(new Error('Not provided.'))),
  },
  guards: {
    isInDoubt: ({ event }) => (event as unknown as { error: { code?: string } }).error.code === 'in_doubt',
    mayRetry: ({ context }) => context.tries < 2,
  },
  delays: { expiry: 40 * day, pause: 60_000 },
}).createMachine({
  id: 'claim',
  context: ({ input }) => ({ amount: input.amount, notes: [], payment: null, tries: 0, by: null }),
  initial: 'reviewing',
  on: {
    NOTE: { actions: assign({ notes: ({ context, event }) => [...context.notes, event.text] }) },
    STAMP: { actions: assign({ stamp: () => new Date(0) }) },
    BREAK: {
      actions: assign(() => {
        throw new Error('The chart is broken.')
      }),
    },
  },
  states: {
    reviewing: {
      on: {
        APPROVE: { target: 'paying', actions: assign({ by: ({ event }) => event.by }) },
        REJECT: 'rejected',
      },
      after: { expiry: 'expired' },
    },
    paying: {
      invoke: {
        src: 'pay',
        input: ({ context }) => ({ amount: context.amount, claim: context.by ?? '' }),
        onDone: { target: 'paid', actions: assign({ payment: ({ event }) => event.output }) },
        onError: [
          { guard: 'isInDoubt', target: 'asking' },
          {
            guard: 'mayRetry',
            target: 'waiting',
            actions: assign({ tries: ({ context }) => context.tries + 1 }),
          },
          { target: 'failed' },
        ],
      },
    },
    asking: {
      invoke: {
        src: 'askBank',
        input: ({ context }) => ({ claim: context.by ?? '' }),
        onDone: [
          {
            guard: ({ event }) => event.output !== null,
            target: 'paid',
            actions: assign({ payment: ({ event }) => event.output }),
          },
          { target: 'paying' },
        ],
        onError: 'failed',
      },
    },
    waiting: { after: { pause: 'paying' } },
    paid: { type: 'final' },
    rejected: { type: 'final' },
    expired: { type: 'final' },
    failed: { type: 'final' },
  },
  output: ({ context }) => ({ payment: context.payment }),
})

export { idempotencyKey }
