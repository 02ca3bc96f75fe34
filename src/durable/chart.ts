import {
  type AnyActorScope,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  createActor,
  transition,
} from 'xstate'
import { readProperty } from '../core/base/json.js'
import { valueOr } from '../core/base/maybe-promise.js'
import { isRecord } from '../../guards/lib/stored.js'
import { ConfigError, describeError, StatewrightError, UsageError, configError } from '../core/base/errors.js'
import type {
  MachineEvent,
  StoredActor,
  StoredDelay,
  StoredMachineState,
} from '../core/sessions/log/machine-record.js'
import { copyJson } from './plain-json.js'

interface StepTime {
  /** Milliseconds since the epoch, by the store's clock. */
  now: number
  seq: number
  sendToSelf: (event: AnyEventObject) => void
}

/** An actor that starts with a step, and its input as the chart returned it. */
export interface StartedActor extends StoredActor {
  id: string
  input: unknown
  /** The idempotency keys in the log of an agent that was already running. */
  keys?: readonly string[]
}

export interface Step {
  state: StoredMachineState
  starts: StartedActor[]
  /** Functions to run when the record is durable. Some are async. */
  effects: (() => unknown)[]
  sent: { to: string; event: AnyEventObject }[]
}

const emptyState: StoredMachineState = {
  status: 'active',
  value: {},
  context: {},
  actors: {},
  delays: [],
  queue: [],
  held: [],
  inbox: 0,
  keys: [],
}

const activeSnapshot = { status: 'active', output: undefined, error: undefined }

/** Represents a running actor in pure transitions. Stores the input. */
const stub = {
  getInitialSnapshot: (_scope: unknown, input: unknown) => ({ ...activeSnapshot, input }),
  transition: (snapshot: unknown) => snapshot,
  getPersistedSnapshot: (snapshot: unknown) => snapshot,
} as unknown as AnyActorLogic

/** Maximum transitions per event, because a chart whose `always` transitions never end would block the process. */
const mostMicrosteps = 10_000

interface ExecutableAction {
  type: string
  info: unknown
  params: unknown
  exec?: ((info: unknown, params: unknown) => void) | undefined
}

/** The transitions of a machine. Each step starts from plain JSON, so that it is the same after a restart. */
export class DurableChart {
  readonly machine: AnyStateMachine
  readonly #stubbed: AnyStateMachine

  constructor(machine: AnyStateMachine) {
    this.machine = machine
    const names = Object.keys(machine.implementations.actors)
    this.#stubbed = machine.provide({ actors: Object.fromEntries(names.map((name) => [name, stub])) })
    this.#stubbed.options = { maxIterations: mostMicrosteps, ...machine.config.options }
  }

  knows(type: string): boolean {
    return this.machine.events.some(
      (known: string) =>
        known === '*' ||
        known === type ||
        (known.endsWith('.*') && `${type}.`.startsWith(known.slice(0, -1))),
    )
  }

  /** Why sessions in this state cannot continue on this chart. `before` is the value that was stored. */
  findMisfits({ value, actors, delays, status }: StoredMachineState, before: unknown = value): string[] {
    const running = Object.entries(actors)
    const missing = running.filter(([, { src }]) => !(src in this.machine.implementations.actors))
    if (missing.length > 0) return missing.map(([, { src }]) => `the actor '${src}' is missing`)
    if (status !== 'active') return []
    const nodes: AnyStateNode[] = []
    const misfits = findStateMisfits(this.machine.root, value, nodes)
    if (misfits.length > 0) return misfits
    const invoked = new Map(nodes.flatMap(({ invoke }) => invoke.map(({ id, src }) => [id, src])))
    const old = new Set(listPaths(before))
    const moved = nodes.filter(
      ({ path, id }) => !old.has(path.join('.')) && !old.has(id.slice(this.machine.id.length + 1)),
    )
    const isStored = (id: string): boolean =>
      delays.some(({ event: { type } }) => type.startsWith('xstate.after.') && type.endsWith(`.${id}`))
    return [
      ...running
        .filter(([id, { src }]) => invoked.get(id) !== src)
        .map(([id, { src }]) => `no active state invokes { id: '${id}', src: '${src}' }, which is running`),
      ...moved.flatMap(({ id, type, invoke, after, always }) => [
        ...(invoke.some((actor) => !(actor.id in actors))
          ? [`'${id}' has an actor, which starts on entry only`]
          : []),
        ...(after.length > 0 && !isStored(id) ? [`'${id}' has a delay, which starts on entry only`] : []),
        ...(always?.length ? [`'${id}' has an eventless transition, which is not taken`] : []),
        ...(type === 'final' ? [`'${id}' is final, which ends a session on entry only`] : []),
      ]),
    ]
  }

  /**
   * Applies an event to a stored state. Without a state, starts the machine with the input in the event.
   * @throws {UsageError} `transition_failed`, `not_json`, `unsupported_actor`
   */
  take(stored: StoredMachineState | null, event: MachineEvent, { now, seq, sendToSelf }: StepTime): Step {
    const state = stored ?? emptyState
    let before: AnyMachineSnapshot | null = null
    let after: AnyMachineSnapshot
    let actions: ExecutableAction[]
    let self: AnyActorRef | undefined
    const shell = {
      getInitialSnapshot: () => activeSnapshot,
      transition: (_snapshot: unknown, _event: unknown, scope: AnyActorScope) => {
        self = scope.self
        self.send = sendToSelf
        scope.logger = (...texts) => console.log(...texts)
        if (!stored) return this.#stubbed.getInitialSnapshot(scope, event['input'])
        before = this.#restore(stored, scope)
        // The chart's functions may modify the event.
        return this.#stubbed.transition(before, structuredClone(event), scope as never)
      },
      getPersistedSnapshot: (snapshot: unknown) => snapshot,
    } as unknown as AnyActorLogic
    try {
      const result = transition(shell, {} as never, { type: 'step' }) as unknown
      ;[after, actions] = result as [AnyMachineSnapshot, ExecutableAction[]]
      if (!stored && after.status === 'error') throw after.error
    } catch (cause) {
      if (cause instanceof StatewrightError) throw cause
      throw new UsageError(
        'transition_failed',
        `The event '${event.type}' had no effect, because one of the chart's guards or actions failed: ${describeError(cause)}`,
        event.type,
        { cause },
      )
    }
    const invoked = listInvokedIds(after)
    refuseSpawned(after, invoked)
    const running = (before as AnyMachineSnapshot | null)?.children ?? {}
    const isActive = after.status === 'active'
    const starts = isActive ? listStarts(after, running, seq) : []
    const remaining = Object.entries(state.actors).filter(
      ([id]) => isActive && after.children[id] === running[id],
    )
    const started = starts.map(({ id, src, at, key }) => [id, { src, at, key }] as const)
    const { effects, sent, ...own } = sortActions(actions, { now, self, state })
    // XState would copy a context that contains itself without an end.
    const persisted = this.machine.getPersistedSnapshot({ ...after, context: {}, children: {} } as never)
    const { historyValue } = persisted as { historyValue?: unknown }
    return {
      starts,
      effects,
      sent,
      state: {
        ...state,
        status: after.status,
        value: after.value,
        context: copyJson(after.context, 'context'),
        output: copyJson(after.output as unknown, 'output'),
        error: after.error,
        historyValue,
        // The state that waited for a held outcome may have been exited.
        held: state.held.filter(
          ({ event: { actorId } }) =>
            invoked.has(String(actorId)) && !starts.some(({ id }) => id === actorId),
        ),
        actors: Object.fromEntries([...remaining, ...started]),
        ...(isActive ? own : { delays: [], queue: [] }),
      },
    }
  }

  #restore(
    { actors, context, historyValue, status, value, output, error }: StoredMachineState,
    scope: AnyActorScope,
  ): AnyMachineSnapshot {
    const children = Object.entries(actors).map(([id, { src }]) => [
      id,
      { src, syncSnapshot: false, snapshot: { status: 'active' } },
    ])
    const history = this.#findHistory(historyValue)
    const stored = { status, value, output, error, context: {}, historyValue: history }
    const snapshot = { ...stored, children: Object.fromEntries(children) } as never
    const restored = this.#stubbed.restoreSnapshot(snapshot, scope as never)
    // An actor that has ended can still be sent events.
    for (const id of listInvokedIds(restored))
      (restored.children as Record<string, AnyActorRef>)[id] ??= createActor(stub, { id, parent: scope.self })
    // XState replaces parts of a context that look like its references to actors.
    return Object.assign(restored, { context: structuredClone(context) })
  }

  /** XState finds the states by their ids only if no id contains a dot. */
  #findHistory(historyValue: unknown): Record<string, unknown[]> {
    const { idMap } = this.#stubbed as unknown as { idMap: ReadonlyMap<string, unknown> }
    const stored = (historyValue ?? {}) as Record<string, { id: string }[]>
    return Object.fromEntries(
      Object.entries(stored).map(([key, nodes]) => [key, nodes.flatMap(({ id }) => idMap.get(id) ?? [])]),
    )
  }
}

function listInvokedIds(snapshot: AnyMachineSnapshot): ReadonlySet<string> {
  // oxlint-disable-next-line no-underscore-dangle -- XState has no public list of the active states
  const nodes = (snapshot as unknown as { _nodes: { invoke: { id: string }[] }[] })._nodes
  return new Set(nodes.flatMap(({ invoke }) => invoke.map(({ id }) => id)))
}

/** Only an invoked actor has a name, and a state in which a restart can start the actor again. */
function refuseSpawned({ status, children }: AnyMachineSnapshot, invoked: ReadonlySet<string>): void {
  const spawned = Object.entries(children).find(([id]) => !invoked.has(id))
  if (status !== 'active' || spawned === undefined) return
  const [id, ref] = spawned
  const src = (ref as { src: unknown } | undefined)?.src
  const name = typeof src === 'string' ? src : id
  throw new UsageError(
    'unsupported_actor',
    `The chart spawned the actor '${name}', which cannot be stored. Invoke the actor in a state instead.`,
    name,
  )
}

const toRegions = (value: unknown): Record<string, unknown> =>
  typeof value === 'string' ? { [value]: {} } : isRecord(value) ? value : {}

/** The paths of the states in a state value. The root is ''. */
const listPaths = (value: unknown, path = ''): string[] => [
  path,
  ...Object.entries(toRegions(value)).flatMap(([name, inner]) =>
    listPaths(inner, path === '' ? name : `${path}.${name}`),
  ),
]

/** Compares a state value with the chart. Adds the active states to `nodes`. */
function findStateMisfits(node: AnyStateNode, value: unknown, nodes: AnyStateNode[]): string[] {
  nodes.push(node)
  const inner = toRegions(value)
  const active = Object.keys(inner)
  const states = Object.keys(node.states).filter((name) => node.states[name]?.type !== 'history')
  const unknown = active.filter((name) => !states.includes(name))
  if (unknown.length > 0)
    return unknown.map((name) => `the state '${[...node.path, name].join('.')}' is missing`)
  if (active.length !== (node.type === 'parallel' ? states.length : Math.min(1, states.length)))
    return [
      `'${node.id}' needs ${node.type === 'parallel' ? 'all' : 'one'} of its states ${states.join(', ')}`,
    ]
  return active.flatMap((name) => findStateMisfits(node.states[name] as AnyStateNode, inner[name], nodes))
}

function listStarts(after: AnyMachineSnapshot, running: Record<string, unknown>, at: number): StartedActor[] {
  const started = Object.entries(after.children).filter(([id, ref]) => ref && running[id] !== ref)
  const places = new Map<string, number>()
  return started.map(([id, ref]) => {
    const src = String((ref as { src: unknown }).src)
    const place = (places.get(src) ?? 0) + 1
    places.set(src, place)
    const { input } = (ref as AnyActorRef).getSnapshot() as { input?: unknown }
    return { id, src, at, key: `${src}.${at}${place > 1 ? `.${place}` : ''}`, input }
  })
}

/** Separates the built-in actions, which become part of the state, from the functions of the chart. */
function sortActions(
  actions: readonly ExecutableAction[],
  { now, self, state }: { now: number; self: AnyActorRef | undefined; state: StoredMachineState },
): Pick<Step, 'effects' | 'sent'> & Pick<StoredMachineState, 'delays' | 'queue'> {
  const effects: Step['effects'] = []
  const sent: Step['sent'] = []
  const queue = [...state.queue]
  let delays = [...state.delays]
  const addDelay = (event: AnyEventObject, delay: number, id: string | undefined): void => {
    if (Number.isNaN(delay))
      throw new UsageError(
        'transition_failed',
        `The delay of the event '${event.type}' is NaN. Return a number of milliseconds.`,
        event.type,
      )
    const added: StoredDelay = {
      id: id ?? createDelayId(delays, now),
      event: copyJson(event, 'event'),
      at: Math.min(now + Math.max(0, Math.round(delay)), 8.64e15),
    }
    delays = [...delays.filter((one) => one.id !== added.id), added]
  }
  for (const { type, info, params, exec } of actions) {
    const { event, delay, id, to, sendId } = (params ?? {}) as {
      event: AnyEventObject
      delay?: unknown
      id?: string
      to?: { id: string }
      sendId?: string
    }
    if (type === 'xstate.raise' && typeof delay === 'number') addDelay(event, delay, id)
    else if (type === 'xstate.cancel') delays = delays.filter((one) => one.id !== sendId)
    else if (type === 'xstate.sendTo') {
      if (to === self && typeof delay === 'number') addDelay(event, delay, id)
      else if (to === self) queue.push(copyJson(event, 'event'))
      else if (typeof delay !== 'number' && to) sent.push({ to: to.id, event })
      else
        throw new UsageError(
          'unsupported_actor',
          `The chart sends '${event.type}' to an actor with a delay. Use after or raise with a delay, then sendTo.`,
          event.type,
        )
    } else if (exec && (type === 'xstate.log' || !type.startsWith('xstate.')))
      effects.push(() => exec(info, params))
  }
  return { effects, sent, delays, queue }
}

/** Creates an id for a delay. After a removal, the count alone could repeat an id. */
function createDelayId(delays: readonly StoredDelay[], now: number): string {
  let n = delays.length
  while (delays.some(({ id }) => id === `delay.${n}.${now}`)) n += 1
  return `delay.${n}.${now}`
}

/**
 * Checks that the chart can be stored. `provided` contains the names of the actors that the caller passed.
 * @throws {ConfigError} `invalid_machine`, `missing_actor`, `unsupported_actor`, `invalid_config`
 */
export function checkChart(
  machine: AnyStateMachine,
  provided: readonly string[],
  once: readonly string[],
  isAgent: (logic: unknown) => boolean,
): void {
  const { actors } = machine.implementations as { actors: Record<string, AnyActorLogic | undefined> }
  if (typeof machine.config.id !== 'string' || machine.config.id === '')
    throw new ConfigError(
      'invalid_machine',
      'durable(machine): give the machine an id. Its sessions are stored with it.',
      'id',
    )
  checkActorIds(machine.root)
  const invoked = listInvoked(machine.root)
  const names = invoked.map(({ src }) => String(src))
  const unused = provided.find((name) => !names.includes(name))
  if (unused !== undefined)
    throw configError(
      `actors: no state in the machine '${machine.id}' invokes '${unused}'. Its actors: ${names.join(', ') || 'none'}.`,
      `actors.${unused}`,
    )
  const unsupported = (message: string, subject: string): ConfigError =>
    new ConfigError('unsupported_actor', message, subject)
  for (const { state, src, onSnapshot } of invoked) {
    if (typeof src !== 'string' || src.startsWith('xstate.invoke.'))
      throw unsupported(
        `The state '${state}' invokes an actor without a name. Name it in setup({ actors }), and invoke it by that name.`,
        state,
      )
    if (onSnapshot !== undefined)
      throw unsupported(
        `The state '${state}' has onSnapshot for '${src}'. Actor snapshots are not stored. Use onDone and onError.`,
        src,
      )
    const logic = actors[src]
    if (logic === undefined || logic === null)
      throw new ConfigError(
        'missing_actor',
        `The state '${state}' invokes '${src}', which is missing. Pass it: durable(machine, { actors: { ${src} } }).`,
        src,
      )
    if (!isAgent(logic) && !isPromiseLogic(logic))
      throw unsupported(
        `The state '${state}' invokes '${src}', which is neither fromPromise(…) nor an agent. Other actors cannot be stored.`,
        src,
      )
  }
  for (const name of once) {
    const logic = actors[name]
    if (logic !== undefined && !isAgent(logic) && isPromiseLogic(logic)) continue
    throw configError(`once: '${name}' is not a fromPromise actor of this machine.`, 'once')
  }
}

function listInvoked({
  id,
  invoke,
  states,
}: AnyStateNode): { state: string; src: unknown; onSnapshot: unknown }[] {
  return [
    ...invoke.map(({ src, onSnapshot }) => ({ state: id, src, onSnapshot })),
    ...Object.values(states).flatMap(listInvoked),
  ]
}

/** Returns the ids of the actors. An actor replaces a running actor with the same id. */
function checkActorIds({ type, invoke, states }: AnyStateNode): ReadonlySet<string> {
  const inner = Object.values(states).map(checkActorIds)
  const below = inner.flatMap((ids) => [...ids])
  const all = [...(type === 'parallel' ? below : new Set(below)), ...invoke.map(({ id }) => id)]
  const double = all.find((id, i) => all.indexOf(id) !== i)
  if (double === undefined) return new Set(all)
  throw new ConfigError(
    'unsupported_actor',
    `Two actors that can run at the same time have the id '${double}'. Give each of them an id: invoke: { id, src }.`,
    double,
  )
}

/** Whether `fromPromise` created the logic. XState has no mark, but only such logic ends with this event. */
function isPromiseLogic(logic: AnyActorLogic): boolean {
  if (typeof logic !== 'object' || !('config' in logic) || typeof logic.start !== 'function') return false
  const before = { ...activeSnapshot, input: undefined }
  const event = { type: 'xstate.promise.resolve', data: 'probe' }
  const after = valueOr(() => logic.transition(before as never, event as never, {} as never) as unknown, null)
  return readProperty(after, 'output') === 'probe'
}
