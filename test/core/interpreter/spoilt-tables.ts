import type { AnyMachineSnapshot, AnyStateMachine, AnyTransitionDefinition } from 'xstate'
import { type Branch, ChartTables, type Leaf, type Plan } from '../../../src/core/interpreter/chart-tables.js'

/** Tables with one fault each, as a careless chart reader would produce. */
export const spoiltTables: Record<string, (machine: AnyStateMachine) => ChartTables> = {
  'try the branches from the outside in': withBranches((branches) => branches.toReversed()),
  'forget the last branch': withBranches((branches) =>
    branches.length > 1 ? branches.slice(0, -1) : branches,
  ),
  'forget a guard': withBranches((branches) =>
    branches.map(({ transition, guard }, i) => ({ transition, guard: i === 0 ? null : guard })),
  ),
  'enter states from the inside out': withPlan((plan) => ({ ...plan, entries: plan.entries.toReversed() })),
  'forget what a transition does': withPlan((plan) => ({ ...plan, actions: [] })),
  'forget to stop actors': withPlan((plan) => ({
    ...plan,
    exits: plan.exits.map((exit) => ({ ...exit, stops: [] })),
  })),
  'forget to start actors': withPlan((plan) => ({
    ...plan,
    entries: plan.entries.map((entry) => ({ ...entry, invokes: [] })),
  })),
  'act on entering before acting on leaving': withPlan((plan) => ({
    ...plan,
    exits: [],
    entries: plan.entries.map((entry, i) =>
      i === 0
        ? { ...entry, actions: [...entry.actions, ...plan.exits.flatMap(({ actions }) => actions)] }
        : entry,
    ),
  })),
  'forget what history states remember': withPlan((plan) => ({ ...plan, remembered: null })),
  'stay where they are': withPlan((plan, leaf) => ({ ...plan, to: leaf })),
  'do not see that states change': withPlan((plan) => ({ ...plan, changesStates: false })),
  'keep the way to a history state': (machine) => new RememberingTables(machine),
}

/** The agent's chart has no two nested states with exit actions. */
export const leavingOutsideIn = withPlan((plan) => ({ ...plan, exits: plan.exits.toReversed() }))

function withPlan(spoil: (plan: Plan, leaf: Leaf) => Plan) {
  return (machine: AnyStateMachine): ChartTables =>
    new (class extends ChartTables {
      override getPlan(leaf: Leaf, transition: AnyTransitionDefinition, snapshot: AnyMachineSnapshot): Plan {
        return spoil(super.getPlan(leaf, transition, snapshot), leaf)
      }
    })(machine)
}

function withBranches(spoil: (branches: readonly Branch[]) => readonly Branch[]) {
  return (machine: AnyStateMachine): ChartTables =>
    new (class extends ChartTables {
      override listBranches(leaf: Leaf, type: string): readonly Branch[] {
        return spoil(super.listBranches(leaf, type))
      }
    })(machine)
}

/** Each transition has a stored plan, even if it depends on the run. */
class RememberingTables extends ChartTables {
  readonly #plans = new Map<AnyTransitionDefinition, Plan>()

  override getPlan(leaf: Leaf, transition: AnyTransitionDefinition, snapshot: AnyMachineSnapshot): Plan {
    const plan = this.#plans.get(transition) ?? super.getPlan(leaf, transition, snapshot)
    if (transition.target?.[0]?.type === 'history') this.#plans.set(transition, plan)
    return plan
  }
}
