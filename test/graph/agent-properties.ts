import { listApprovers } from '../../machines/agent/approvals.js'
import type { AnyEventObject } from 'xstate'
import type { agentMachine } from '../../machines/agent.machine.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import {
  type AgentSpace,
  canReach,
  decreases,
  isFinal,
  leadsTo,
  type Moment,
  never,
  until,
} from '../../src/testing/index.js'

type AgentMoment = Moment<typeof agentMachine>

const isAskingForApproval = ({ snapshot, context }: AgentMoment): boolean =>
  snapshot.matches({ WAITING_FOR_INPUT: 'approval' }) && waitsForPerson(context)

/** Every call that needs approval has been decided, or the run has ended. */
const isDecided = ({ context, status }: AgentMoment): boolean => status === 'done' || !waitsForPerson(context)

function waitsForPerson(context: AgentContext): boolean {
  return listAnswerableCalls(context).some(({ needs }) => needs === 'approval')
}

const isCancelling = ({ event }: AgentMoment): boolean => event.type === 'CANCEL'

const isRequesting = ({ snapshot }: AgentMoment): boolean =>
  snapshot.matches({ RUNNING: { asking: 'requesting' } }) ||
  snapshot.matches({ RUNNING: { asking: 'concluding' } })

/** The end of a run, or the idle state between two turns of a conversation. */
const isOver = (moment: AgentMoment): boolean =>
  isFinal(moment) || moment.snapshot.matches({ WAITING_FOR_INPUT: 'message' })

/** Holds if people do not take back what they decided. */
export const decisionProperties = {
  'every approval that is asked for is given, refused, or ended with the run, if people answer': leadsTo(
    isAskingForApproval,
    isDecided,
    { fair: ['APPROVE'] },
  ),
}

/** Safety: holds for all behavior of people, providers and processes. */
export const agentProperties = {
  'from every state there is a way to an end': canReach<typeof agentMachine>(isFinal),
  'CANCEL leads to CANCELLED, and no request is made in between': until(
    (moment: AgentMoment) => !isRequesting(moment),
    ({ value }) => value === 'CANCELLED',
    { from: isCancelling },
  ),
  'no state but CANCELLED follows CANCEL': never(
    (moment: AgentMoment) => isCancelling(moment) && moment.value !== 'CANCELLED',
  ),
}

/**
 * The consumable resources, the most lasting first: steps, attempts, people's answers, call results, money. Each number is the
 * remaining amount. Where only the spent part is known, the number counts down from zero.
 */
function rankAgent({ context }: AgentMoment): number[] {
  const { steps, attempt, rateLimits, recoveries, reprompts, emptyRetries, outputRepairs, calls } = context
  return [
    -steps,
    -recoveries - reprompts - emptyRetries - outputRepairs,
    -attempt - rateLimits,
    calls.reduce((work, call) => work + countOpenWork(call), 0),
    -context.usage.run.totalTokens,
  ]
}

/** The remaining work on a call: screening, decision, votes, start, end, and screening of its result. */
function countOpenWork(call: AgentContext['calls'][number]): number {
  const { result, unscreenedResult, unscreenedArguments, started, approved, undecided, approvals = [] } = call
  if (result !== undefined) return unscreenedResult ? 1 : 0
  // A question that names no approvers can become one that does, after an edit. The reverse is impossible.
  const open = 5 - Math.min(approvals.length, 2) + (listApprovers(call).length === 0 ? 1 : 0)
  const decision = undecided ? open - 1 : approved ? 0 : open
  const screening = unscreenedArguments ? (undecided ? 1 : 2) : 0
  return 10 + screening + (started ? 0 : 2) + decision
}

/** Liveness: holds if the model answers or fails, tools end, people answer, and nothing disturbs the run. */
export const undisturbedProperties = {
  'every run reaches an end': leadsTo<typeof agentMachine>(() => true, isOver, {
    fair: [
      'xstate.done.actor.*',
      'xstate.error.actor.model',
      'TOOL_RESULT',
      'APPROVE',
      'TOOL_OUTPUT',
      'RESUME',
    ],
  }),
  'every cycle uses up a step, an attempt, an answer or a result': decreases(rankAgent),
}

/**
 * Actions that people and processes may repeat without limit, so no run can exhaust them. A run cannot exhaust a sub-agent's
 * requests either, because the sub-agent is a separate run with the same properties. Calls that load a tool or a skill, and
 * handoffs, end with their result.
 */
const disturbances = new Set([
  'CANCEL',
  'DEADLINE',
  'STORE_FAILED',
  'PAUSE',
  'STEER',
  'REPLY',
  'RESUMED',
  'RELEASED',
  'CHILD_WAITING',
  'TOOLS_LOADED',
  'SKILL_CHANGED',
  'HANDLE_SAVED',
  'HANDED_OFF',
  'GRANT',
  'GRANT_ENDED',
  'REVOKE',
])

/** The same space without disturbances, a scheduled resume, and a temporarily empty shared budget. */
export function withoutDisturbances(space: AgentSpace): AgentSpace {
  return without(
    space,
    (event) => disturbances.has(event.type) || 'at' in event || event['error']?.wakeAt !== undefined,
  )
}

/** The same space without revocations. People who approve and revoke in turn never decide. */
export function withoutRevocations(space: AgentSpace): AgentSpace {
  return without(space, ({ type }) => type === 'REVOKE')
}

function without(space: AgentSpace, isExcluded: (event: AnyEventObject) => boolean): AgentSpace {
  return {
    ...space,
    alphabet: (snapshot) =>
      Object.fromEntries(
        Object.entries<AnyEventObject>(space.alphabet(snapshot)).filter(([, event]) => !isExcluded(event)),
      ),
  }
}
