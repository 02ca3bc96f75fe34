import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../../machines/agent.machine.js'
import type { EmittedEvent } from '../../../../machines/agent/announcements.js'
import {
  type AgentContext,
  type AgentMachineEvent,
  getEventTime,
} from '../../../../machines/agent/context.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { getOrCreate } from '../../../core/base/values.js'
import { describeValue } from '../../../core/chart/state-labels.js'
import type { Arrival, Invariant } from '../../check-invariants.js'

export interface Change {
  event: AgentMachineEvent
  now: number
  before: AgentContext | undefined
  after: AgentContext
  /** The dotted state, such as `RUNNING.asking.requesting` or `CANCELLED`. */
  state: string
  isFinal: boolean
  isRest: boolean
  announced: readonly EmittedEvent[]
  started: readonly { id: string; src: string }[]
  running: readonly string[]
  transitions: readonly string[]
  isTaken: boolean
  listAnnounced: <Type extends EmittedEvent['type']>(type: Type) => Extract<EmittedEvent, { type: Type }>[]
  hasStarted: (src: string) => boolean
  /** Whether the run has just left the safe point of the loop to send a request. */
  hasBegunStep: () => boolean
  hasTaken: (target: string) => boolean
  findBefore: (callId: string) => BatchCall | undefined
  findAfter: (callId: string) => BatchCall | undefined
}

export type AgentInvariant = Invariant<typeof agentMachine>

type Rule = (change: Change) => string | false | null | undefined

/** The rules of the agent machine, by name. A rule returns a sentence if the change violates it. */
export function createRules(rules: Readonly<Record<string, Rule>>): AgentInvariant[] {
  return Object.entries(rules).map(([name, findProblem]) => ({
    name,
    holds: (snapshot, arrival) =>
      findProblem(getOrCreate(changes, arrival, () => readChange(snapshot, arrival))) || undefined,
  }))
}

const changes = new WeakMap<object, Change>()

const stepPattern =
  /^RUNNING\.preparing\.checkingLimits: .*→ RUNNING\.(asking\.requesting|preparing\.fittingContext)$/

function readChange(
  { context, value, status, children }: SnapshotFrom<typeof agentMachine>,
  { event, previous, actions, transitions }: Arrival<typeof agentMachine>,
): Change {
  const listParams = <Params>(type: string) =>
    actions.filter((action) => action.type === type).map(({ params }) => params as Params)
  const announced = listParams<{ event: EmittedEvent }>('xstate.emit').map((params) => params.event)
  const started = listParams<Change['started'][number]>('xstate.spawnChild')
  return {
    event: event as AgentMachineEvent,
    now: getEventTime(event as AgentMachineEvent),
    before: previous?.context,
    after: context,
    state: describeValue(value),
    isFinal: status === 'done',
    isRest: status === 'done' || context.state === 'PAUSED' || context.state === 'WAITING_FOR_INPUT',
    announced,
    started,
    running: Object.keys(children),
    transitions,
    isTaken: transitions.length > 0,
    listAnnounced: (type) => announced.filter((one) => one.type === type) as never,
    hasStarted: (src) => started.some((actor) => actor.src === src),
    hasBegunStep: () => transitions.some((id) => stepPattern.test(id)),
    hasTaken: (target) => transitions.some((id) => id.endsWith(`→ ${target}`)),
    findBefore: (callId) => previous?.context.calls.find(({ id }) => id === callId),
    findAfter: (callId) => context.calls.find(({ id }) => id === callId),
  }
}

type EventOf<Type extends AgentMachineEvent['type']> = Extract<AgentMachineEvent, { type: Type }>

export function isAnswer(
  event: AgentMachineEvent,
): event is EventOf<'xstate.done.actor.model' | 'xstate.done.actor.conclusion'> {
  return event.type === 'xstate.done.actor.model' || event.type === 'xstate.done.actor.conclusion'
}

export function isFailedRequest(
  event: AgentMachineEvent,
): event is EventOf<'xstate.error.actor.model' | 'xstate.error.actor.conclusion'> {
  return event.type === 'xstate.error.actor.model' || event.type === 'xstate.error.actor.conclusion'
}

export function listOpenCalls(calls: readonly BatchCall[] = []): string[] {
  return calls.filter(({ result }) => result === undefined).map(({ id }) => id)
}
