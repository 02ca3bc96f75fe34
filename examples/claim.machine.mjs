/**
 * An insurance claim. An agent sorts it, a person decides, the bank pays, and another agent writes the letter.
 *
 *   statewright paths examples/claim.machine.mjs
 */
import { assign, fromPromise, setup } from 'xstate'

const missing = fromPromise(() => Promise.reject(new Error('examples/claim.mjs provides this actor.')))

const machine = setup({
  actors: { triage: missing, pay: missing, findPayment: missing, write: missing },
  guards: {
    isSmall: ({ context }) => context.amount < 100,
    isInDoubt: ({ event }) => event.error?.code === 'in_doubt',
    mayRetry: ({ context }) => context.failures < 2,
    isPaid: ({ event }) => event.output !== null,
  },
  actions: {
    setKind: assign({ kind: ({ event }) => event.output?.output ?? 'unknown' }),
    setPayment: assign({ payment: ({ event }) => event.output }),
    setLetter: assign({ letter: ({ event }) => event.output?.output ?? '' }),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
  },
  delays: { patience: 30 * 24 * 3_600_000, pause: 60_000 },
}).createMachine({
  id: 'claim',
  context: ({ input }) => ({ ...input, kind: '', payment: null, letter: '', failures: 0 }),
  initial: 'triaging',
  states: {
    triaging: {
      invoke: {
        id: 'triage',
        src: 'triage',
        input: ({ context }) => context.text,
        onDone: [
          { guard: 'isSmall', target: 'paying', actions: 'setKind' },
          { target: 'reviewing', actions: 'setKind' },
        ],
        onError: 'reviewing',
      },
    },
    reviewing: {
      on: { APPROVE: 'paying', REJECT: 'rejected' },
      after: { patience: 'expired' },
    },
    // The payment may have been made, so it is looked up. It is repeated only if the bank does not know it.
    paying: {
      invoke: {
        id: 'pay',
        src: 'pay',
        input: ({ context }) => context.amount,
        onDone: { target: 'writing', actions: 'setPayment' },
        onError: [
          { guard: 'isInDoubt', target: 'checking' },
          { guard: 'mayRetry', target: 'waiting', actions: 'countFailure' },
          { target: 'failed' },
        ],
      },
    },
    checking: {
      invoke: {
        id: 'findPayment',
        src: 'findPayment',
        onDone: [
          { guard: 'isPaid', target: 'writing', actions: 'setPayment' },
          { guard: 'mayRetry', target: 'paying', actions: 'countFailure' },
          { target: 'failed' },
        ],
        onError: 'failed',
      },
    },
    waiting: { after: { pause: 'paying' } },
    writing: {
      invoke: {
        id: 'write',
        src: 'write',
        input: ({ context }) => `The claim is paid: ${context.text}`,
        onDone: { target: 'closed', actions: 'setLetter' },
        onError: 'closed',
      },
    },
    closed: { type: 'final' },
    rejected: { type: 'final' },
    expired: { type: 'final' },
    failed: { type: 'final' },
  },
  output: ({ context }) => ({ payment: context.payment, letter: context.letter }),
})

export default machine

const done = (id, output) => ({ type: `xstate.done.actor.${id}`, output, actorId: id })
const error = (id, code) => ({
  type: `xstate.error.actor.${id}`,
  error: { message: 'No.', code },
  actorId: id,
})

export const inputs = {
  large: { text: 'My roof leaks.', amount: 900 },
  small: { text: 'My cup broke.', amount: 20 },
}

export const alphabet = {
  'triage answers': done('triage', { output: 'SIMPLE' }),
  'triage fails': error('triage'),
  approve: { type: 'APPROVE' },
  reject: { type: 'REJECT' },
  paid: done('pay', 'p1'),
  'the bank is closed': error('pay', 'closed'),
  'the payment is in doubt': error('pay', 'in_doubt'),
  'the bank knows the payment': done('findPayment', 'p1'),
  'the bank knows no payment': done('findPayment', null),
  'the bank does not answer': error('findPayment'),
  'the letter is written': done('write', { output: 'Dear customer.' }),
  'the letter fails': error('write'),
}
