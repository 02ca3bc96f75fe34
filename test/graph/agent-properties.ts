import type { AnyEventObject } from 'xstate'
import type { agentMachine } from '../../machines/agent.machine.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
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

/** Every call that a person is asked about has been decided, or the run has ended. */
const isDecided = ({ context, status }: AgentMoment): boolean => status === 'done' || !waitsForPerson(context)

function waitsForPerson(context: AgentContext): boolean {
  return listAnswerableCalls(context).some(({ needs }) => needs === 'approval')
}

const isCancelling = ({ event }: AgentMoment): boolean => event.type === 'CANCEL'

const isRequesting = ({ snapshot }: AgentMoment): boolean =>
  snapshot.matches({ RUNNING: { asking: 'requesting' } }) ||
  snapshot.matches({ RUNNING: { asking: 'concluding' } })

/** An end, or the rest between two turns of a conversation. */
const isOver = (moment: AgentMoment): boolean =>
  isFinal(moment) || moment.snapshot.matches({ WAITING_FOR_INPUT: 'message' })

/** What holds whatever people, providers and processes do. */
export const agentProperties = {
  'every approval that is asked for is given, refused, or ended with the run, if people answer': leadsTo(
    isAskingForApproval,
    isDecided,
    { fair: ['APPROVE'] },
  ),
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
 * What is used up, the most lasting first: steps, attempts, answers of people and results of calls, money. Each number is
 * what is left, counted below nothing where only the spent part is known.
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

/** What is still to be done about a call: to be screened, to be decided, to be begun, to end, its result to be screened. */
function countOpenWork(call: AgentContext['calls'][number]): number {
  const { result, unscreenedResult, unscreenedArguments, started, approved } = call
  if (result !== undefined) return unscreenedResult ? 1 : 0
  return 10 + (unscreenedArguments ? 1 : 0) + (started ? 0 : 2) + (approved ? 0 : 3)
}

/** What holds if the model answers or fails, tools end and people answer, and nothing disturbs the run. */
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
 * What people and processes may do at any time, as often as they like: no run can use it up. Nor can it use up what a
 * sub-agent asks: that is a run of its own, of which the same holds. A call that loads a tool or a skill, or hands over,
 * ends by its result.
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
])

/** The same space without what disturbs a run. */
export function withoutDisturbances(space: AgentSpace): AgentSpace {
  return {
    ...space,
    alphabet: (snapshot) =>
      Object.fromEntries(
        Object.entries<AnyEventObject>(space.alphabet(snapshot)).filter(
          // A resume for later is one as well, and a shared budget that is empty for now.
          ([, event]) =>
            !disturbances.has(event.type) && !('at' in event) && event['error']?.wakeAt === undefined,
        ),
      ),
  }
}
