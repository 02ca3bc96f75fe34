import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  pathToStateValue,
  type StateValue,
} from 'xstate'
import { getOrCreate } from '../base/values.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import { findContextStep, type ContextStep } from '../../../machines/agent/update-action.js'
import { type BuiltinAction, type BuiltinGuard, toBuiltinGuard, toSpawn, toStop } from './xstate-internals.js'

/** An active state without children. Its ancestors are active, too. */
export interface Leaf {
  node: AnyStateNode
  /** The active states, root first. */
  nodes: AnyStateNode[]
  value: StateValue
  tags: Set<string>
  /** The `always` branches of the active states, innermost first. */
  always: readonly Branch[]
  /** Branches by event type, filled when an event of that type arrives. */
  branches: Map<string, readonly Branch[]>
  plans: Map<AnyTransitionDefinition, Plan>
}

export interface Branch {
  transition: AnyTransitionDefinition
  guard: TableGuard | null
}

type PlainGuard = (args: { context: unknown; event: AnyEventObject }, params: undefined) => boolean

export interface TableGuard {
  /** A plain function without parameters, which is the usual case. Undefined for other guards. */
  plain: PlainGuard | undefined
  builtin: BuiltinGuard
}

/** The effects of a transition in one leaf state. */
export interface Plan {
  to: Leaf
  /** Whether different states are active afterwards, or a history state stores a value. */
  changesStates: boolean
  /** The stored values of history states by id, or null if there are none. */
  remembered: HistoryValue | null
  /** Innermost first. */
  exits: readonly Exit[]
  actions: readonly TableAction[]
  /** Outermost first. */
  entries: readonly Entry[]
}

export interface Exit {
  actions: readonly TableAction[]
  stops: readonly { id: string; stop: BuiltinAction }[]
}

export interface Entry {
  node: AnyStateNode
  actions: readonly TableAction[]
  invokes: readonly Invoke[]
  childIds: readonly string[]
  /** The actions of `initial`, if it enters this state. */
  initialActions: readonly TableAction[]
}

export interface Invoke extends Pick<InvokeDefinition, 'id' | 'src'> {
  /** A value, or a function of context, event and self. */
  input: unknown
  /** XState's own action that starts the actor. */
  spawn: BuiltinAction
  /** Whether XState handles the actor, for example because the chart sets `onSnapshot` or `systemId`. */
  isUnusual: boolean
}

export interface TableAction {
  /** The name reported to inspectors. */
  type: string
  /** A value, or a function of context and event. */
  params: unknown
  /** An action of this package, which runs without XState's wrapper. */
  step: ContextStep | undefined
  /** A user's function or one of XState's actions. Undefined if it is missing. */
  implementation: BuiltinAction | ((info: never, params: never) => void) | undefined
}

/**
 * The chart as lazily filled tables. XState computes candidates, exits, entries and the state value at each transition;
 * here, each is computed once. The chart itself belongs to XState. Machines that share their state nodes,
 * actions and guards share the tables.
 */
export class ChartTables {
  readonly #machine: AnyStateMachine
  readonly #leaves = new Map<AnyStateNode, Leaf>()
  readonly #exits = new Map<AnyStateNode, Exit>()

  constructor(machine: AnyStateMachine) {
    this.#machine = machine
  }

  /** The leaf of a snapshot. Undefined for states that no transition leads to. */
  findLeaf({ _nodes: nodes }: AnyMachineSnapshot): Leaf | undefined {
    const node = nodes.at(-1)
    if (node === undefined || !isLeaf(node) || nodes.length !== node.path.length + 1) return undefined
    return this.getLeaf(node)
  }

  getLeaf(node: AnyStateNode): Leaf {
    return getOrCreate(this.#leaves, node, () => {
      const nodes = [...listAncestors(node).reverse(), node]
      return {
        node,
        nodes,
        value: pathToStateValue(node.path),
        tags: new Set(nodes.flatMap(({ tags }) => tags)),
        always: nodes.toReversed().flatMap(({ always }) => this.#toBranches(always ?? [])),
        branches: new Map(),
        plans: new Map(),
      }
    })
  }

  listBranches(leaf: Leaf, type: string): readonly Branch[] {
    const known = leaf.branches.get(type)
    if (known) return known
    const inwardsOut = leaf.nodes.toReversed()
    const branches = inwardsOut.flatMap((node) => this.#toBranches(listCandidates(node, type)))
    // Only types named in the chart are cached, so that external events do not grow the tables.
    if (inwardsOut.some(({ transitions }) => transitions.has(type))) leaf.branches.set(type, branches)
    return branches
  }

  getPlan(leaf: Leaf, transition: AnyTransitionDefinition, { historyValue }: AnyMachineSnapshot): Plan {
    const known = leaf.plans.get(transition)
    if (known) return known
    const plan = this.#readPlan(leaf, transition, historyValue)
    // The target of a history state depends on the run.
    if (transition.target?.[0]?.type !== 'history') leaf.plans.set(transition, plan)
    return plan
  }

  /** The exit actions of all active states, executed when a run is done. */
  listExits({ nodes }: Leaf): readonly Exit[] {
    return nodes.toReversed().map((node) => this.#getExit(node))
  }

  #toBranches(transitions: readonly AnyTransitionDefinition[]): Branch[] {
    return transitions.map((transition) => ({ transition, guard: this.#toGuard(transition.guard) }))
  }

  #toGuard(guard: unknown): TableGuard | null {
    if (guard === undefined) return null
    const found = typeof guard === 'string' ? this.#machine.implementations.guards[guard] : guard
    const isPlain = typeof found === 'function' && !('check' in found)
    return { plain: isPlain ? (found as PlainGuard) : undefined, builtin: toBuiltinGuard(guard) }
  }

  #toActions(actions: readonly unknown[]): TableAction[] {
    return actions.map((action) => this.toAction(action))
  }

  toAction(action: unknown): TableAction {
    const { actions } = this.#machine.implementations
    if (typeof action === 'function') {
      const type = action.name || '(anonymous)'
      return { type, params: undefined, step: findContextStep(action), implementation: action as never }
    }
    const { type, params } =
      typeof action === 'string'
        ? { type: action, params: undefined }
        : (action as { type: string; params?: unknown })
    const implementation = actions[type] as TableAction['implementation']
    return { type, params, step: findContextStep(implementation), implementation }
  }

  #getExit(node: AnyStateNode): Exit {
    return getOrCreate(this.#exits, node, () => ({
      actions: this.#toActions(node.exit),
      stops: node.invoke.map(({ id }: { id: string }) => ({ id, stop: toStop(id) })),
    }))
  }

  #readPlan(leaf: Leaf, transition: AnyTransitionDefinition, history: HistoryValue): Plan {
    const actions = this.#toActions(transition.actions)
    const target = transition.target?.[0] as AnyStateNode | undefined
    if (!target) return { to: leaf, changesStates: false, remembered: null, exits: [], actions, entries: [] }
    const domain = findDomain(transition, resolveHistory(target, history))
    const left = leaf.nodes.filter((node) => isDescendant(node, domain))
    if (transition.reenter && transition.source === domain && !left.includes(domain)) left.push(domain)
    left.sort((a, b) => b.order - a.order)
    const remembered = listRemembered(left, leaf)
    // A history state that is left in this transition leads back to the states that are currently active.
    const { entered, byInitial } = collectEntered(transition, target, {
      ...history,
      ...Object.fromEntries(remembered),
    })
    const active = new Set([...leaf.nodes.filter((node) => !left.includes(node)), ...entered])
    const to = this.getLeaf([...active].findLast(isLeaf) ?? leaf.node)
    return {
      to,
      changesStates: to !== leaf || remembered.length > 0,
      remembered: remembered.length > 0 ? Object.fromEntries(remembered) : null,
      exits: left.map((node) => this.#getExit(node)),
      actions,
      entries: entered
        .toSorted((a, b) => a.order - b.order)
        .map((node) => this.#toEntry(node, byInitial.has(node))),
    }
  }

  #toEntry(node: AnyStateNode, isByInitial: boolean): Entry {
    const definitions = node.invoke as unknown as InvokeDefinition[]
    const invokes = definitions.map((definition): Invoke => {
      const { id, src, input, systemId, onSnapshot } = definition
      const spawn = toSpawn(src, { ...definition, syncSnapshot: onSnapshot !== undefined })
      const isUnusual = systemId !== undefined || onSnapshot !== undefined || src.startsWith('xstate.invoke.')
      return { id, src, input, spawn, isUnusual }
    })
    return {
      node,
      actions: this.#toActions(node.entry),
      invokes,
      childIds: invokes.map(({ id }) => id),
      initialActions: isByInitial ? this.#toActions(node.initial.actions) : [],
    }
  }
}

/** For machines with the chart's own actions and guards. */
export const agentTables = new ChartTables(agentMachine)

type HistoryValue = Readonly<Record<string, AnyStateNode[]>>

interface InvokeDefinition {
  id: string
  src: string
  input?: unknown
  systemId?: string
  onSnapshot?: unknown
}

/** A sentence about the first part of a chart that the tables do not support, or null. */
export function findUnknownPart({ root }: AnyStateMachine): string | null {
  const look = (node: AnyStateNode): string | null => {
    const { type, id, initial, config } = node
    if (type === 'parallel') return `state '${id}' is parallel`
    if (type === 'history' && config.target !== undefined) return `history state '${id}' has a target`
    if (type === 'compound' && initial.target[0]?.type === 'history')
      return `state '${id}' starts in a history state`
    const transitions = [...node.transitions.values(), node.always ?? []].flat() as AnyTransitionDefinition[]
    if (transitions.some(({ target }) => (target?.length ?? 0) > 1))
      return `a transition of state '${id}' has several targets`
    for (const child of Object.values(node.states)) {
      const found = look(child)
      if (found !== null) return found
    }
    return null
  }
  return root.type === 'atomic' ? `the machine '${root.id}' has no states` : look(root)
}

function isLeaf({ type }: AnyStateNode): boolean {
  return type === 'atomic' || type === 'final'
}

function listAncestors(node: AnyStateNode, below?: AnyStateNode): AnyStateNode[] {
  const ancestors: AnyStateNode[] = []
  if (node === below) return ancestors
  for (let above = node.parent; above && above !== below; above = above.parent) ancestors.push(above)
  return ancestors
}

/** `undefined` is the parent of the root, so every state is a descendant of it. */
function isDescendant(node: AnyStateNode, ancestor: AnyStateNode | undefined): boolean {
  return ancestor === undefined || listAncestors(node).includes(ancestor)
}

/** Transitions of one state. Exact types come before wildcards, and long wildcards before short ones. */
function listCandidates({ transitions }: AnyStateNode, type: string): AnyTransitionDefinition[] {
  const byType: Map<string, AnyTransitionDefinition[]> = transitions
  const wild = [...byType.keys()]
    .filter((descriptor) => descriptor !== type && matchesWildcard(type, descriptor))
    .sort((a, b) => b.length - a.length)
  return [type, ...wild].flatMap((descriptor) => byType.get(descriptor) ?? [])
}

/** `*` matches every type; `a.b.*` matches types that start with the tokens `a` and `b`. */
function matchesWildcard(type: string, descriptor: string): boolean {
  if (descriptor === '*') return true
  const wanted = descriptor.split('.')
  const tokens = type.split('.')
  const isWild = wanted.indexOf('*') === wanted.length - 1
  return isWild && wanted.slice(0, -1).every((token, i) => token === tokens[i])
}

/** The target state; a history state resolves to its stored or initial states. */
function resolveHistory(target: AnyStateNode, history: HistoryValue): AnyStateNode {
  if (target.type !== 'history') return target
  return history[target.id]?.[0] ?? target.parent?.initial.target[0] ?? target
}

/** The innermost state that stays active during a transition, or undefined if even the root is left. */
function findDomain(
  { source, reenter }: AnyTransitionDefinition,
  target: AnyStateNode,
): AnyStateNode | undefined {
  if (!reenter && (target === source || isDescendant(target, source))) return source
  const common = listAncestors(target).find((ancestor) => isDescendant(source, ancestor))
  return common ?? (reenter ? undefined : source.machine.root)
}

/** The entered states, and the states entered through `initial`. */
function collectEntered(
  transition: AnyTransitionDefinition,
  target: AnyStateNode,
  history: HistoryValue,
): { entered: AnyStateNode[]; byInitial: Set<AnyStateNode> } {
  const { source, reenter } = transition
  const reached = resolveHistory(target, history)
  const domain = findDomain(transition, reached)
  const entered = new Set<AnyStateNode>()
  const byInitial = new Set<AnyStateNode>()
  const enterChildren = (node: AnyStateNode): void => {
    if (node.type === 'history') {
      const next = resolveHistory(node, history)
      entered.add(next)
      if (history[node.id] === undefined && node.parent) byInitial.add(node.parent)
      enterChildren(next)
      for (const ancestor of listAncestors(next, node.parent)) entered.add(ancestor)
    } else if (node.type === 'compound') {
      const [initial] = node.initial.target as [AnyStateNode]
      entered.add(initial)
      byInitial.add(initial)
      enterChildren(initial)
    }
  }
  if (target.type !== 'history' && (source !== target || source !== domain || reenter)) {
    entered.add(target)
    byInitial.add(target)
  }
  enterChildren(target)
  const inside = source.parent === undefined && reenter ? undefined : domain
  for (const ancestor of listAncestors(reached, domain))
    if (isDescendant(ancestor, inside)) entered.add(ancestor)
  return { entered: [...entered], byInitial }
}

function listRemembered(left: readonly AnyStateNode[], { nodes }: Leaf): [string, AnyStateNode[]][] {
  return left.flatMap((node) =>
    Object.values<AnyStateNode>(node.states)
      .filter(({ type }) => type === 'history')
      .map(({ id, history }): [string, AnyStateNode[]] => [
        id,
        nodes.filter((active) =>
          history === 'deep' ? isLeaf(active) && isDescendant(active, node) : active.parent === node,
        ),
      ]),
  )
}
