// A machine with an agent whose dangerous calls need the signatures of two people within a day. An agent requires this without
// a custom machine: `approvals: { expiresMs: 86_400_000, approvers: { count: 2 } }` (docs/approvals.md). A machine of your own
// adds what approvals do not have: notifications, escalation to other people, and steps before and after the decision. Provide
// the agent with `machine.provide({ actors: { agent: agent.machine } })`, and set `needsApproval: true` on its dangerous tools.
//
//   statewright paths examples/sign-off.machine.mjs
import { assign, fromPromise, sendTo, setup } from 'xstate'

const missing = fromPromise(() =>
  Promise.reject(new Error('Provide the agent: { actors: { agent: agent.machine } }')),
)

export default setup({
  actors: { agent: missing },
  guards: {
    /** Whether a call is waiting that is not the call being signed. */
    asksForSignatures: ({ context, event }) => {
      const call = waitingCall(event.snapshot)
      return call !== undefined && call.id !== context.callId
    },
    isLastSignature: ({ context, event }) =>
      context.signedBy.length === 1 && !context.signedBy.includes(event.by),
    isNewSignature: ({ context, event }) => !context.signedBy.includes(event.by),
    hasCompleted: ({ event }) => event.output.state === 'COMPLETED',
  },
  actions: {
    present: assign(({ event }) => ({ callId: waitingCall(event.snapshot)?.id, signedBy: [] })),
    sign: assign(({ context, event }) => ({ signedBy: [...context.signedBy, event.by] })),
    release: sendTo('agent', ({ context }) => ({ type: 'APPROVE', callId: context.callId })),
    refuse: sendTo('agent', ({ context, event }) => ({
      type: 'REJECT',
      callId: context.callId,
      why: event.type === 'REFUSE' ? `${event.by} refused.` : 'Nobody signed within a day.',
    })),
  },
  delays: { aDay: 86_400_000 },
}).createMachine({
  id: 'signOff',
  context: ({ input }) => ({ task: input.task, callId: undefined, signedBy: [] }),
  initial: 'running',
  states: {
    running: {
      invoke: {
        id: 'agent',
        src: 'agent',
        input: ({ context }) => context.task,
        onSnapshot: { guard: 'asksForSignatures', target: '.awaitingSignatures', actions: 'present' },
        onDone: [{ guard: 'hasCompleted', target: 'finished' }, { target: 'failed' }],
        onError: { target: 'failed' },
      },
      on: { STOP: { actions: sendTo('agent', { type: 'CANCEL' }) } },
      initial: 'working',
      states: {
        working: {},
        awaitingSignatures: {
          on: {
            SIGN: [
              { guard: 'isLastSignature', target: 'working', actions: ['sign', 'release'] },
              { guard: 'isNewSignature', actions: 'sign' },
            ],
            REFUSE: { target: 'working', actions: 'refuse' },
          },
          after: { aDay: { target: 'working', actions: 'refuse' } },
        },
      },
    },
    finished: { type: 'final' },
    failed: { type: 'final' },
  },
})

/** Returns the agent's call that a person must approve. */
function waitingCall(snapshot) {
  const { state, calls = [] } = snapshot.context ?? {}
  if (state !== 'WAITING_FOR_INPUT') return undefined
  return calls.find(({ needs, result }) => needs === 'approval' && result === undefined)
}

export const inputs = { 'a deployment': { task: 'Deploy version 7.' } }

/** The events that this machine can receive from people and from the agent, with only the data that its guards read. */
export const alphabet = {
  'Ada signs': { type: 'SIGN', by: 'Ada' },
  'Ben signs': { type: 'SIGN', by: 'Ben' },
  'Ben refuses': { type: 'REFUSE', by: 'Ben' },
  stop: { type: 'STOP' },
  'the agent works': seen('WAITING_FOR_TOOL', []),
  'the agent wants to deploy': seen('WAITING_FOR_INPUT', [{ id: 'a', needs: 'approval' }]),
  'the agent wants to delete': seen('WAITING_FOR_INPUT', [{ id: 'b', needs: 'approval' }]),
  'the agent completes': { type: 'xstate.done.actor.agent', output: { state: 'COMPLETED' } },
  'the agent fails': { type: 'xstate.done.actor.agent', output: { state: 'ERROR' } },
  'the agent is broken': { type: 'xstate.error.actor.agent', error: { message: 'Broken.' } },
}

function seen(state, calls) {
  return { type: 'xstate.snapshot.agent', snapshot: { status: 'active', context: { state, calls } } }
}

/** The rule that this machine must follow. */
export const invariants = [
  {
    name: 'no call is released without the signatures of two people',
    holds: ({ context }, { transitions }) => {
      const isReleased = transitions.some((id) => id.includes('[isLastSignature]'))
      return !isReleased || new Set(context.signedBy).size >= 2
    },
  },
]
