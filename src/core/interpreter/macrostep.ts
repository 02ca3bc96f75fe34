import {
  type AnyActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyTransitionDefinition,
  createActor,
} from 'xstate'
import { extendObject } from '../../../guards/lib/json.js'
import type { Branch, ChartTables, Entry, Exit, Invoke, Leaf, Plan, TableAction } from './chart-tables.js'
import { isLightLogic, LightActor } from './light-actor.js'
import { type ActionArguments, type BuiltinAction, type TransitionScope, toStop } from './xstate-internals.js'

type Children = Record<string, AnyActorRef | undefined>

/** A state that is being entered. Afterwards, XState resolves `retries` again, with their parameters. */
interface Entering {
  childIds: readonly string[]
  retries: [BuiltinAction, unknown][]
}

/**
 * Processes one event and everything that follows until the machine settles, in XState's order: the selected
 * transition, then `always` transitions and raised events. Actions, inspectors and subscribers observe the same
 * behavior as with XState.
 */
export class Macrostep {
  readonly #tables: ChartTables
  readonly #scope: TransitionScope
  /** The current event, whether sent or raised. */
  #event: AnyEventObject
  #snapshot: AnyMachineSnapshot
  #leaf: Leaf
  /** The context after the actions of the current transition. The snapshot does not contain this context yet. */
  #context: unknown
  #children: Children
  #isChanged = false
  #status: AnyMachineSnapshot['status'] = 'active'
  #output: unknown
  readonly #raised: AnyEventObject[] = []

  constructor(
    tables: ChartTables,
    leaf: Leaf,
    snapshot: AnyMachineSnapshot,
    event: AnyEventObject,
    scope: TransitionScope,
  ) {
    this.#tables = tables
    this.#leaf = leaf
    this.#snapshot = snapshot
    this.#event = event
    this.#scope = scope
    this.#context = snapshot.context
    this.#children = snapshot.children
  }

  select(): AnyTransitionDefinition | undefined {
    const { type } = this.#event
    try {
      return this.#pick(this.#tables.listBranches(this.#leaf, type))
    } catch {
      // A guard threw. XState evaluates the guard again to name it in the error.
      return this.#snapshot.machine.getTransitionData(this.#snapshot, this.#event as never)[0]
    }
  }

  run(selected: AnyTransitionDefinition | undefined): AnyMachineSnapshot {
    this.#take(selected)
    const { maxIterations = Infinity } = this.#snapshot.machine.options
    let count = 0
    let mayBeEventless = true
    while (this.#snapshot.status === 'active') {
      if (++count > maxIterations) throw endlessError(maxIterations)
      const before = this.#snapshot
      const eventless = mayBeEventless ? this.#pick(this.#leaf.always) : undefined
      if (eventless) {
        this.#take(eventless)
        // A transition that changes nothing must not be repeated.
        mayBeEventless = this.#snapshot !== before
        continue
      }
      const raised = this.#raised.shift()
      if (raised === undefined) break
      this.#event = raised
      this.#take(this.select())
      mayBeEventless = true
    }
    if (this.#snapshot.status !== 'active') this.#stopChildren()
    return this.#snapshot
  }

  #pick(branches: readonly Branch[]): AnyTransitionDefinition | undefined {
    if (branches.length === 0) return undefined
    const args = { context: this.#snapshot.context as unknown, event: this.#event }
    for (const { transition, guard } of branches) {
      if (guard === null) return transition
      const { plain, builtin } = guard
      if (plain ? plain(args, undefined) : builtin.check(this.#snapshot, args, builtin)) return transition
    }
    return undefined
  }

  /** Performs one microstep: exits states, executes actions, and enters states. */
  #take(transition: AnyTransitionDefinition | undefined): void {
    if (transition) this.#carryOut(this.#tables.getPlan(this.#leaf, transition, this.#snapshot))
    const { self, system } = this.#scope
    const { _sendInspectionEvent: inspect } = system
    inspect({
      type: '@xstate.microstep',
      actorRef: self,
      event: this.#event,
      snapshot: this.#snapshot,
      _transitions: transition ? [transition] : [],
    })
  }

  #carryOut(plan: Plan): void {
    for (const { actions, stops } of plan.exits) {
      this.#act(actions)
      for (const each of stops) this.#stop(each)
    }
    this.#act(plan.actions)
    for (const entry of plan.entries) this.#enter(entry)
    if (this.#status === 'done') for (const { actions } of this.#tables.listExits(plan.to)) this.#act(actions)
    if (plan.changesStates) this.#snapshot = this.#move(plan)
    else if (this.#isChanged) this.#snapshot = this.#stay()
    this.#leaf = plan.to
    this.#isChanged = false
  }

  #enter({ node, actions, invokes, childIds, initialActions }: Entry): void {
    const entering: Entering = { childIds, retries: [] }
    this.#act(actions, entering)
    for (const invoke of invokes) this.#spawn(invoke, entering)
    this.#act(initialActions, entering)
    for (const [action, params] of entering.retries) action.retryResolve?.(this.#scope, this.#stay(), params)
    if (node.type !== 'final') return
    const { parent } = node
    if (parent?.parent) {
      const output = resolveOutput(node.output, this.#context, this.#event, this.#scope)
      this.#raised.push({ type: `xstate.done.state.${parent.id}`, output })
      return
    }
    this.#status = 'done'
    const { root } = this.#snapshot.machine
    if (root.output === undefined) return
    const output = resolveOutput(node.output, this.#context, this.#event, this.#scope)
    const done = { type: `xstate.done.state.${node.id}`, output }
    this.#output = resolveOutput(root.output, this.#context, done, this.#scope)
  }

  #act(actions: readonly TableAction[], entering?: Entering): void {
    for (const action of actions) {
      const { step } = action
      if (step) {
        const next = step(this.#context, this.#event, this.#emit, this.#resolveParams(action))
        if (next === undefined) continue
        this.#context = next
        this.#isChanged = true
      } else this.#actAsXState(action, entering)
    }
  }

  #actAsXState(action: TableAction, entering?: Entering): void {
    const { type, implementation } = action
    const params = this.#resolveParams(action)
    if (implementation && 'resolve' in implementation) this.#resolve(implementation, params, entering)
    else this.#scope.actionExecutor({ type, info: this.#arguments(), params, exec: implementation })
  }

  #resolve(action: BuiltinAction, actionParams?: unknown, entering?: Entering): void {
    const scope = this.#scope
    const info = this.#arguments()
    const extra = { internalQueue: this.#raised, deferredActorIds: entering?.childIds }
    const before = this.#stay()
    const [next, params, actions] = action.resolve(scope, before, info, actionParams, action, extra)
    if (next !== before) {
      this.#context = next.context
      this.#children = next.children as Children
      this.#isChanged = true
    }
    if ('retryResolve' in action) entering?.retries.push([action, params])
    if ('execute' in action) this.#execute(action, info, params)
    if (actions) for (const each of actions) this.#act([this.#tables.toAction(each)], entering)
  }

  #execute(action: BuiltinAction, info: ActionArguments, params: unknown): void {
    const { type, execute } = action
    this.#scope.actionExecutor({ type, info, params, exec: execute?.bind(null, this.#scope, params) })
  }

  readonly #emit = (announcement: { type: string }): void => {
    const scope = this.#scope
    const exec = (): void => scope.defer(() => scope.emit(announcement))
    const params = { event: announcement }
    scope.actionExecutor({ type: 'xstate.emit', info: this.#arguments(), params, exec })
  }

  #spawn(invoke: Invoke, entering: Entering): void {
    const { id, src, input: inputOption, spawn } = invoke
    const logic = this.#snapshot.machine.implementations.actors[src]
    if (invoke.isUnusual || logic === undefined) {
      this.#resolve(spawn, undefined, entering)
      return
    }
    const { self } = this.#scope
    const input: unknown =
      typeof inputOption === 'function'
        ? inputOption({ context: this.#context, event: this.#event, self })
        : inputOption
    const actorRef = isLightLogic(logic)
      ? (new LightActor(logic as never, { id, src, parent: self, input }) as unknown as AnyActorRef)
      : createActor(
          logic as AnyActorLogic,
          { id, src, parent: self, syncSnapshot: false, systemId: undefined, input } as never,
        )
    const info = this.#arguments()
    this.#children = extendObject(this.#children, { [id]: actorRef })
    this.#isChanged = true
    this.#execute(spawn, info, { id, systemId: undefined, actorRef, src, input })
  }

  #stop({ id, stop }: Exit['stops'][number]): void {
    const actorRef = this.#children[id]
    const info = this.#arguments()
    this.#isChanged = true
    if (actorRef) {
      const { [id]: _stopped, ...rest } = this.#children
      this.#children = rest
    }
    this.#execute(stop, info, actorRef)
  }

  /** Stops the children of a machine that has ended. The machine's last snapshot still lists these children. */
  #stopChildren(): void {
    for (const child of Object.values(this.#children)) this.#resolve(toStop(child))
  }

  #resolveParams({ params }: TableAction): unknown {
    return typeof params === 'function' ? params({ context: this.#context, event: this.#event }) : params
  }

  #arguments(): ActionArguments {
    const { self, system } = this.#scope
    return { context: this.#context, event: this.#event, self, system }
  }

  #stay(): AnyMachineSnapshot {
    const { _nodes: nodes, value, tags, historyValue } = this.#snapshot
    return this.#isChanged ? this.#copy(nodes, value, tags, historyValue) : this.#snapshot
  }

  #move({ to, remembered }: Plan): AnyMachineSnapshot {
    const { historyValue } = this.#snapshot
    const history = remembered ? { ...historyValue, ...remembered } : historyValue
    // When a machine is done, XState leaves its states in exit order.
    const isDone = this.#status === 'done'
    const nodes = isDone ? to.nodes.toReversed() : to.nodes
    const tags = isDone ? new Set<string>(nodes.flatMap((node) => node.tags)) : to.tags
    return this.#copy(nodes, to.value, tags, history)
  }

  /** Creates a snapshot with its members in XState's order, so that all snapshots have the same hidden class. */
  #copy(
    nodes: AnyMachineSnapshot['_nodes'],
    value: AnyMachineSnapshot['value'],
    tags: AnyMachineSnapshot['tags'],
    historyValue: AnyMachineSnapshot['historyValue'],
  ): AnyMachineSnapshot {
    const from = this.#snapshot
    return {
      status: this.#status,
      output: this.#status === 'done' ? this.#output : from.output,
      error: from.error as unknown,
      machine: from.machine,
      context: this.#context,
      _nodes: nodes,
      value,
      tags,
      children: this.#children,
      historyValue,
      // oxlint-disable unbound-method -- methods of each snapshot, called on the snapshot
      matches: from.matches,
      hasTag: from.hasTag,
      can: from.can,
      getMeta: from.getMeta,
      toJSON: from.toJSON,
      // oxlint-enable unbound-method
    } as AnyMachineSnapshot
  }
}

function resolveOutput(
  output: unknown,
  context: unknown,
  event: AnyEventObject,
  { self }: TransitionScope,
): unknown {
  return typeof output === 'function' ? (output({ context, event, self }) as unknown) : output
}

function endlessError(maxIterations: number): Error {
  return new Error(
    `Infinite loop detected: the machine has processed more than ${maxIterations} microsteps without reaching a stable state. ` +
      "This usually happens when there's a cycle of transitions (e.g., eventless transitions or raised events causing " +
      'state A -> B -> C -> A).',
  )
}
