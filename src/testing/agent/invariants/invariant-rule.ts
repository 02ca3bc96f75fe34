import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../../machines/agent.machine.js'
import type { EmittedEvent } from '../../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../../machines/agent/context.js'
import { type AgentMachineEvent, getEventTime } from '../../../../machines/agent/machine-events.js'
import type { BatchCall } from '../../../../machines/agent/batch-calls.js'
import { describeValue } from '../../../core/chart/state-labels.js'
import type { Arrival, Invariant } from '../../check-invariants.js'

type Snapshot = SnapshotFrom<typeof agentMachine>

export interface Change {
  event: AgentMachineEvent
  now: number
  /** The previous context. Undefined at the start of a run. */
  before: AgentContext | undefined
  after: AgentContext
  /** The dotted state, such as `RUNNING.asking.requesting` or `CANCELLED`. */
  state: string
  isFinal: boolean
  isRest: boolean
  announced: readonly EmittedEvent[]
  started: readonly StartedActor[]
  running: readonly string[]
  transitions: readonly string[]
}

export interface StartedActor {
  id: string
  src: string
  input: unknown
}

export type AgentInvariant = Invariant<typeof agentMachine>

/** A rule of the agent machine. `problem` returns a sentence if the change violates it. */
export function createRule(
  name: string,
  problem: (change: Change) => string | false | null | undefined,
): AgentInvariant {
  return { name, holds: (snapshot, arrival) => problem(getChange(snapshot, arrival)) || undefined }
}

const changes = new WeakMap<object, Change>()

function getChange(snapshot: Snapshot, arrival: Arrival<typeof agentMachine>): Change {
  const known = changes.get(arrival)
  if (known) return known
  const { context, value, status, children } = snapshot
  const event = arrival.event as AgentMachineEvent
  const change: Change = {
    event,
    now: getEventTime(event),
    before: arrival.previous?.context,
    after: context,
    state: describeValue(value),
    isFinal: status === 'done',
    isRest: status === 'done' || context.state === 'PAUSED' || context.state === 'WAITING_FOR_INPUT',
    announced: arrival.actions
      .filter(({ type }) => type === 'xstate.emit')
      .map(({ params }) => (params as { event: EmittedEvent }).event),
    started: arrival.actions
      .filter(({ type }) => type === 'xstate.spawnChild')
      .map(({ params }) => params as StartedActor),
    running: Object.keys(children),
    transitions: arrival.transitions,
  }
  changes.set(arrival, change)
  return change
}

export function listAnnounced<Type extends EmittedEvent['type']>(
  { announced }: Change,
  type: Type,
): Extract<EmittedEvent, { type: Type }>[] {
  return announced.filter((one): one is Extract<EmittedEvent, { type: Type }> => one.type === type)
}

export function hasStarted({ started }: Change, src: string): boolean {
  return started.some((actor) => actor.src === src)
}

/** Whether the run has just left the safe point of the loop to send a request. */
export function hasBegunStep({ transitions }: Change): boolean {
  return transitions.some((id) =>
    /^RUNNING\.preparing\.checkingLimits: .*→ RUNNING\.(asking\.requesting|preparing\.fittingContext)$/.test(
      id,
    ),
  )
}

export function listOpenCalls(calls: readonly BatchCall[] = []): string[] {
  return calls.filter(({ result }) => result === undefined).map(({ id }) => id)
}

export function listAskedCalls({ event }: Change): string[] {
  return event.type === 'xstate.done.actor.model' || event.type === 'xstate.done.actor.conclusion'
    ? event.output.response.toolCalls.map(({ id }) => id)
    : []
}
