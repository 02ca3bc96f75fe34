import {
  and,
  type AnyActorRef,
  type AnyActorScope,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  spawnChild,
  stopChild,
} from 'xstate'

/** The undocumented parts of XState that the tables use. `findChangedInternal` detects changes in another version. */

/** The members of a machine's snapshot, in XState's order. */
const snapshotKeys =
  'status output error machine context _nodes value tags children historyValue matches hasTag can getMeta toJSON'.split(
    ' ',
  )

export interface ActorSystemInternals {
  _bookId: () => string
  _register: (sessionId: string, actor: object) => void
  _unregister: (actor: object) => void
  _relay: (source: object | undefined, target: object, event: AnyEventObject) => void
  _sendInspectionEvent: (event: object) => void
}

export type TransitionScope = Omit<AnyActorScope, 'system' | 'actionExecutor'> & {
  system: ActorSystemInternals
  actionExecutor: (action: {
    type: string
    info: ActionArguments
    params: unknown
    exec: ((info: never, params: never) => void) | undefined
  }) => void
}

export interface ActionArguments {
  context: unknown
  event: AnyEventObject
  self: AnyActorRef
  system: unknown
}

export interface ActionExtra {
  /** Events that the machine processes before it settles, from `raise` and from states that are done. */
  internalQueue: AnyEventObject[]
  /** The ids of the actors started by the state that is being entered. */
  deferredActorIds: readonly string[] | undefined
}

/** One of XState's actions, such as `assign`, `enqueueActions` or `spawnChild`. */
export interface BuiltinAction {
  type: string
  resolve: (
    scope: TransitionScope,
    snapshot: AnyMachineSnapshot,
    info: ActionArguments,
    params: unknown,
    action: BuiltinAction,
    extra: ActionExtra,
  ) => [AnyMachineSnapshot, params: unknown, actions: readonly unknown[] | undefined]
  execute?: (scope: TransitionScope, params: unknown) => void
  retryResolve?: (scope: TransitionScope, snapshot: AnyMachineSnapshot, params: unknown) => void
}

/** One of XState's guards, such as `and`, `not` or `stateIn`. */
export interface BuiltinGuard {
  check: (snapshot: AnyMachineSnapshot, args: object, guard: BuiltinGuard) => boolean
}

export const toSpawn = (src: string, how: object): BuiltinAction =>
  spawnChild(src as never, how as never) as unknown as BuiltinAction
export const toStop = (child: unknown): BuiltinAction => stopChild(child as never) as unknown as BuiltinAction

/** Evaluates a guard of any kind by wrapping it in `and`. */
export const toBuiltinGuard = (guard: unknown): BuiltinGuard =>
  (and as unknown as (guards: readonly unknown[]) => BuiltinGuard)([guard])

/** A sentence about the first internal of XState that differs from what the tables need, or null. */
export function findChangedInternal(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  scope: TransitionScope,
): string | null {
  const { root } = machine
  const { _nodes: nodes } = snapshot
  const { _sendInspectionEvent: inspect, _bookId, _register, _unregister, _relay } = scope.system
  const definitions = [...root.transitions.values()].flat()
  const checks: [what: string, holds: boolean][] = [
    [
      `a snapshot has the members ${snapshotKeys.join(', ')}`,
      Object.keys(snapshot).join() === snapshotKeys.join(),
    ],
    ['snapshot._nodes lists the active states, root first', nodes[0] === root],
    ['a state has an `entry` array', Array.isArray(root.entry)],
    ['a state has an `exit` array', Array.isArray(root.exit)],
    ['a state has an `invoke` array', Array.isArray(root.invoke)],
    ['a state has a `transitions` map', root.transitions instanceof Map],
    ['a state has a numeric `order`', typeof root.order === 'number'],
    [
      'a transition has `source`, `reenter` and an `actions` array',
      definitions.every(
        ({ source, reenter, actions }) =>
          source === root && typeof reenter === 'boolean' && Array.isArray(actions),
      ),
    ],
    ['a machine has getTransitionData', typeof machine.getTransitionData === 'function'],
    ['scope.actionExecutor executes actions', typeof scope.actionExecutor === 'function'],
    ['scope.defer defers effects', typeof scope.defer === 'function'],
    ['scope.system._sendInspectionEvent informs inspectors', typeof inspect === 'function'],
    [
      'scope.system has _bookId, _register, _unregister and _relay for children',
      [_bookId, _register, _unregister, _relay].every((each) => typeof each === 'function'),
    ],
    ['spawnChild has resolve and execute', isBuiltin(toSpawn('', {}), 'xstate.spawnChild')],
    ['stopChild has resolve and execute', isBuiltin(toStop(''), 'xstate.stopChild')],
    ['a guard created by and() has check', typeof toBuiltinGuard('').check === 'function'],
  ]
  const changed = checks.find(([, holds]) => !holds)
  return changed
    ? `this version of XState has different internals. This is no longer true: ${changed[0]}`
    : null
}

function isBuiltin({ type, resolve, execute }: BuiltinAction, expected: string): boolean {
  return type === expected && typeof resolve === 'function' && typeof execute === 'function'
}
