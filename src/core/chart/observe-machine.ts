import {
  and,
  createEmptyActor,
  getInitialMicrosteps,
  StateMachine,
  type AnyActorScope,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
} from 'xstate'
import { listTransitions, type DeclaredTransition, type DefinedTransition } from './state-labels.js'

/** An action that the machine would execute. Exploring never executes actions. */
export interface MachineAction {
  /** The action's name. Built-in actions have names such as `xstate.emit`, `xstate.spawnChild` and `xstate.raise`. */
  type: string
  params: unknown
}

/** The effect of one event on a machine, including all microsteps. */
export interface Macrostep {
  snapshot: AnyMachineSnapshot
  transitions: DefinedTransition[]
  actions: MachineAction[]
}

/** How often the guard of a transition evaluated to true or false. */
export interface Evidence {
  passed: number
  failed: number
}

export interface ObservedMachine {
  machine: AnyStateMachine
  transitions: DefinedTransition[]
  start(input: unknown): Macrostep
  step(snapshot: AnyMachineSnapshot, event: AnyEventObject): Macrostep
  /** All states that have been active in a microstep. */
  reached: ReadonlySet<AnyStateNode>
  evidence(transition: DefinedTransition): Evidence
  /** The guard that threw, if that is why the last call failed. */
  brokenGuard(): { declared: DeclaredTransition; error: unknown } | undefined
}

/** After this many microsteps, a machine without `maxIterations` counts as an infinite loop. */
const maxIterations = 1_000

/**
 * Observes which transitions a machine takes. All dependencies on XState's internals are in this file. The observation
 * uses a private copy, so the machine and its wrappers (such as a journal) do not change. Inspection events name the
 * selected transitions. A marker action shows which of these transitions were taken after conflicts between parallel
 * regions were resolved.
 */
export function observeMachine(original: AnyStateMachine): ObservedMachine {
  const machine: AnyStateMachine = new StateMachine(original.config, original.implementations)
  if (!Number.isFinite(machine.options.maxIterations)) machine.options.maxIterations = maxIterations

  const transitions = listTransitions(machine)
  const byDefinition = new Map(transitions.map((transition) => [transition.definition, transition]))
  const evidence = new Map<DefinedTransition, Evidence>()
  const markers = new Map<unknown, AnyTransitionDefinition>()
  const marked = new Set<AnyTransitionDefinition>()
  const reached = new Set<AnyStateNode>()
  let broken: { declared: DeclaredTransition; error: unknown } | undefined

  for (const transition of transitions) {
    watchGuard(transition)
    mark(transition.definition)
  }

  function watchGuard(transition: DefinedTransition): void {
    const { definition, declared } = transition
    const seen: Evidence = { passed: 0, failed: 0 }
    evidence.set(transition, seen)
    if (definition.guard === undefined) return
    const guard = evaluate([definition.guard])
    const watched: BuiltinGuard = Object.assign(() => false, {
      check: (snapshot: unknown, args: unknown) => {
        try {
          const passes = guard.check(snapshot, args, guard)
          seen[passes ? 'passed' : 'failed']++
          return passes
        } catch (error) {
          broken = { declared, error }
          throw error
        }
      },
    })
    Object.assign(definition, { guard: watched })
  }

  /** A transition without effects gets no marker, because `snapshot.can()` would then report an effect. */
  function mark(definition: AnyTransitionDefinition): void {
    if (definition.target === undefined && definition.actions.length === 0) return
    const marker = (): void => void definition
    markers.set(marker, definition)
    marked.add(definition)
    definition.actions = [marker, ...definition.actions]
  }

  function run(apply: (scope: AnyActorScope) => AnyMachineSnapshot): Macrostep {
    broken = undefined
    const transitions: DefinedTransition[] = []
    const actions: MachineAction[] = []
    const executed = new Set<AnyTransitionDefinition>()
    // Creates a new actor each time, because a system refuses the same systemId twice.
    const self = createEmptyActor()
    self.system.inspect((inspected) => {
      if (inspected.type !== '@xstate.microstep' || inspected.actorRef !== self) return
      const { _transitions: selected } = inspected
      for (const definition of selected) {
        const transition = byDefinition.get(definition)
        if (transition === undefined || (marked.has(definition) && !executed.has(definition))) continue
        transitions.push(transition)
        for (let node: AnyStateNode | undefined = transition.node; node; node = node.parent) reached.add(node)
      }
      executed.clear()
      noteReached(inspected.snapshot as AnyMachineSnapshot)
    })
    const snapshot = apply({
      self,
      system: self.system,
      id: '',
      sessionId: '',
      logger: () => undefined,
      defer: () => undefined,
      emit: () => undefined,
      stopChild: () => undefined,
      actionExecutor: (action) => {
        const definition = markers.get(action.exec)
        if (definition) executed.add(definition)
        else actions.push({ type: action.type, params: action.params })
      },
    })
    noteReached(snapshot)
    return { snapshot, transitions, actions }
  }

  function noteReached(snapshot: AnyMachineSnapshot): void {
    for (const node of listActiveStates(snapshot)) reached.add(node)
  }

  return {
    machine,
    transitions,
    reached,
    start: (input) => {
      const step = run((scope) => machine.getInitialSnapshot(scope, input))
      if (step.snapshot.status === 'error') throw step.snapshot.error
      // Inspection events omit the states that are entered first and left immediately.
      const first = getInitialMicrosteps(machine, input)[0]
      if (first) noteReached(first[0])
      return step
    },
    step: (snapshot, event) => run((scope) => machine.transition(snapshot, event, scope)),
    evidence: (transition) => evidence.get(transition) ?? { passed: 0, failed: 0 },
    brokenGuard: () => broken,
  }
}

export function listActiveStates({ _nodes: nodes }: AnyMachineSnapshot): readonly AnyStateNode[] {
  return nodes
}

/** The internal shape of XState's guard combinators: `and` with one guard evaluates a guard of any kind. */
type BuiltinGuard = (() => boolean) & {
  check: (snapshot: unknown, args: unknown, self: BuiltinGuard) => boolean
}

const evaluate = and as unknown as (guards: readonly unknown[]) => BuiltinGuard
