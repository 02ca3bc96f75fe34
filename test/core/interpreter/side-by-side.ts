import {
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyTransitionDefinition,
  createEmptyActor,
  fromCallback,
  fromPromise,
  initialTransition,
} from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { ChartTables } from '../../../src/core/interpreter/chart-tables.js'
import { toLightLogic } from '../../../src/core/interpreter/light-actor.js'
import { createTableTransition } from '../../../src/core/interpreter/table-transition.js'

/** Above the step count of any event in the product's chart. A mutated chart may loop forever. */
const mostMicrosteps = 1000

/** One interpreter's result for one event. */
interface Outcome {
  snapshot: AnyMachineSnapshot | undefined
  /** Actions, deferred effects, emitted events and microsteps, in order. */
  seen: unknown[]
  thrown: string | undefined
  transitions: readonly AnyTransitionDefinition[]
}

type Transition = (snapshot: AnyMachineSnapshot, event: AnyEventObject, scope: never) => AnyMachineSnapshot

/** A machine whose events go to both interpreters from the same snapshot. */
export class SideBySide {
  readonly machine: AnyStateMachine
  readonly #byXState: Transition
  readonly #byTables: Transition
  readonly #stage = new Stage()
  /** The number of events that both interpreters processed. */
  macrosteps = 0
  /** The transitions that XState took. */
  readonly seen = new Set<AnyTransitionDefinition>()

  constructor(machine: AnyStateMachine, tables?: ChartTables) {
    this.machine = machine
    // oxlint-disable-next-line unbound-method -- XState binds it
    this.#byXState = machine.transition as unknown as Transition
    this.#byTables = createTableTransition(machine, tables) as unknown as Transition
  }

  start(input: unknown): AnyMachineSnapshot {
    return initialTransition(this.machine, input as never)[0] as AnyMachineSnapshot
  }

  /**
   * The snapshot after the event, alternately XState's and the tables', or the first difference between them.
   */
  take(before: AnyMachineSnapshot, event: AnyEventObject): AnyMachineSnapshot | Difference {
    this.macrosteps++
    const expected = this.#stage.perform(this.#byXState, before, event)
    const actual = this.#stage.perform(this.#byTables, before, event)
    const where =
      findDifference(expected.thrown, actual.thrown, 'thrown') ??
      findDifference(expected.seen, actual.seen, 'seen') ??
      findDifference(expected.snapshot, actual.snapshot, 'snapshot') ??
      findDifference(expected.snapshot === before, actual.snapshot === before, 'whether it stays the same')
    for (const transition of expected.transitions) this.seen.add(transition)
    if (where !== null) return new Difference(before, event, where, expected, actual)
    return (this.macrosteps % 2 === 0 ? expected : actual).snapshot ?? before
  }
}

export class Difference {
  constructor(
    readonly before: AnyMachineSnapshot,
    readonly event: AnyEventObject,
    readonly where: string,
    readonly expected: Outcome,
    readonly actual: Outcome,
  ) {}

  toString(): string {
    const { value } = this.before
    return `In ${JSON.stringify(value)} the event '${this.event.type}' makes a difference: ${this.where}`
  }
}

/** The agent's machine with actors that never end. */
export function createIdleAgent(): AnyStateMachine {
  const { actors } = agentMachine.implementations
  const idle = Object.entries(actors).map(([name]) => [
    name,
    name === 'runTools' || name === 'deadline'
      ? toLightLogic(fromCallback(() => undefined))
      : toLightLogic(fromPromise(() => new Promise<never>(() => undefined))),
  ])
  return agentMachine.provide({ actors: Object.fromEntries(idle) as never }) as unknown as AnyStateMachine
}

/** An actor that is replaced periodically, so that its children do not accumulate. */
class Stage {
  #self = createEmptyActor()
  #seen: unknown[] = []
  #transitions: AnyTransitionDefinition[] = []
  #uses = 0

  /** Processes an event in a scope that executes everything, like a running actor. */
  perform(transition: Transition, before: AnyMachineSnapshot, event: AnyEventObject): Outcome {
    if (this.#uses++ % 500 === 0) this.#renew()
    const self = this.#self
    const seen: unknown[] = []
    this.#seen = seen
    const transitions: AnyTransitionDefinition[] = []
    this.#transitions = transitions
    const deferred: (() => void)[] = []
    const scope = {
      self,
      system: self.system,
      id: self.id,
      sessionId: self.sessionId,
      logger: () => undefined,
      defer: (work: () => void) => {
        seen.push('deferred')
        deferred.push(work)
      },
      emit: (emitted: unknown) => seen.push('emitted', emitted),
      stopChild: (child: AnyActorRef) => seen.push('stopped', toName(child)),
      actionExecutor: ({ type, info, params, exec }: ExecutedAction) => {
        seen.push(type, info.context, info.event, info.self === self, info.system === self.system)
        seen.push(withNames(params))
        exec?.(info, params)
      },
    }
    let snapshot: AnyMachineSnapshot | undefined
    let thrown: string | undefined
    try {
      snapshot = transition(before, event, scope as never)
      for (const work of deferred) work()
    } catch (error) {
      thrown = String(error)
    }
    return { snapshot, seen, thrown, transitions }
  }

  #renew(): void {
    const self = createEmptyActor()
    self.system.inspect((inspected) => {
      if (inspected.type === '@xstate.microstep') {
        const { type, event, snapshot, _transitions: transitions } = inspected
        this.#seen.push(type, event, snapshot, transitions)
        this.#transitions.push(...transitions)
        if (this.#transitions.length > mostMicrosteps) throw new Error('An endless loop.')
      } else this.#seen.push(inspected.type, toName(inspected.actorRef))
    })
    this.#self = self
  }
}

interface ExecutedAction {
  type: string
  info: { context: unknown; event: unknown; self: unknown; system: unknown }
  params: unknown
  exec?: (info: unknown, params: unknown) => void
}

function toName(actor: unknown): unknown {
  const { id, src, _syncSnapshot: sync, options } = actor as AnyActorRef & Record<string, unknown>
  return { id, src, sync, input: (options as { input?: unknown }).input }
}

const isActor = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'sessionId' in value && 'send' in value

/** Compares actors by name, because each interpreter creates its actors. */
function withNames(value: unknown): unknown {
  if (isActor(value)) return toName(value)
  if (typeof value !== 'object' || value === null) return value
  const { actorRef } = value as { actorRef?: unknown }
  return isActor(actorRef) ? { ...value, actorRef: toName(actorRef) } : value
}

/** The path where two values differ, or null. Machines, states and functions must be identical. */
export function findDifference(expected: unknown, actual: unknown, path: string): string | null {
  if (Object.is(expected, actual)) return null
  if (isActor(expected) && isActor(actual)) return findDifference(toName(expected), toName(actual), path)
  if (expected instanceof Set && actual instanceof Set)
    return findDifference([...expected], [...actual], path)
  if (!isPlain(expected) || !isPlain(actual))
    return `${path}: ${describe(expected)} by XState, ${describe(actual)} by the tables`
  const keys = Object.keys(expected)
  const others = Object.keys(actual)
  // Also compares order, because inspectors list some of them.
  if (keys.length !== others.length || keys.some((key, i) => key !== others[i]))
    return `${path}: members ${keys.join()} by XState, ${others.join()} by the tables`
  for (const key of keys) {
    const [a, b] = [expected[key], actual[key]]
    if (Object.is(a, b)) continue
    const found = findDifference(a, b, `${path}.${key}`)
    if (found !== null) return found
  }
  return null
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype
}

function describe(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    const { id } = value as { id?: unknown }
    return typeof id === 'string' ? `'${id}'` : Object.prototype.toString.call(value)
  }
  return String(value)
}
