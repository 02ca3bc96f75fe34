import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type SnapshotFrom,
  pathToStateValue,
} from 'xstate'
import { expectArgument, objectRule, optionsRule } from '../../core/base/values.js'
import { PathError } from '../errors.js'
import { getStateName, listStateNodes } from '../../core/chart/state-labels.js'

/**
 * A state and the event that led to it. For an initial state, the event is `xstate.init`.
 *
 * @example
 * const isOpen = ({ value }: Moment) => value === 'open'
 * const reports = checkProperties(machine, { 'never open': never(isOpen) }, { alphabet })
 */
export interface Moment<TMachine extends AnyStateMachine = AnyStateMachine> {
  value: SnapshotFrom<TMachine>['value']
  context: SnapshotFrom<TMachine>['context']
  status: AnyMachineSnapshot['status']
  event: AnyEventObject
  /** The XState snapshot, for `matches(…)` and `output`. */
  snapshot: SnapshotFrom<TMachine>
}

/** A dotted state path (`RUNNING.asking`) or a predicate. */
export type MomentCondition<TMachine extends AnyStateMachine = AnyStateMachine> =
  | string
  | ((moment: Moment<TMachine>) => boolean)

/**
 * Event types that eventually happen if they stay possible: types, patterns (`xstate.done.actor.*`), or true for all.
 * Runs in which such an event stays possible forever without happening are ignored.
 */
export type Fairness = true | readonly string[]

interface Parts<TMachine extends AnyStateMachine> {
  always: { p: MomentCondition<TMachine> }
  never: { p: MomentCondition<TMachine> }
  leadsTo: { p: MomentCondition<TMachine>; q: MomentCondition<TMachine>; fair: Fairness }
  until: {
    p: MomentCondition<TMachine>
    q: MomentCondition<TMachine>
    from: MomentCondition<TMachine> | undefined
    fair: Fairness
  }
  canReach: { q: MomentCondition<TMachine>; from?: MomentCondition<TMachine> | undefined }
  decreases: { rank: (moment: Moment<TMachine>) => number | readonly number[] }
}

/** Created by `always`, `never`, `leadsTo`, `until`, `canReach` or `decreases` for {@link checkProperties}. */
export type Property<TMachine extends AnyStateMachine = AnyStateMachine> = {
  [Kind in keyof Parts<TMachine>]: { readonly kind: Kind } & Readonly<Parts<TMachine>[Kind]>
}[keyof Parts<TMachine>]

/**
 * `p` holds at every moment of every run.
 *
 * @example checkProperties(machine, { 'a door is open or closed': always(({ value }) => value === 'open' || value === 'closed') }, { alphabet })
 */
export function always<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
): Property<TMachine> {
  return { kind: 'always', p: expectCondition(p, 'always(p)') }
}

/**
 * `p` never holds.
 *
 * @example checkProperties(machine, { 'OPEN never closes': never(({ value, event }) => event.type === 'OPEN' && value === 'closed') }, { alphabet })
 */
export function never<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
): Property<TMachine> {
  return { kind: 'never', p: expectCondition(p, 'never(p)') }
}

/**
 * Whenever `p` holds, `q` holds at that moment or later. A run may rest in any state forever unless a `fair` event is
 * possible there. Without `fair`, no event has to happen.
 *
 * @example
 * const isOpen = ({ value }: Moment) => value === 'open'
 * const property = leadsTo(isOpen, 'closed', { fair: ['CLOSE'] })
 * const { closing } = checkProperties(machine, { closing: property }, { alphabet })
 * if (!closing.holds) console.log(closing.message)
 */
export function leadsTo<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
  q: MomentCondition<TMachine>,
  options: { fair?: Fairness } = {},
): Property<TMachine> {
  expectArgument('leadsTo(p, q, options)', options, optionsRule)
  const { fair = [] } = options
  return {
    kind: 'leadsTo',
    p: expectCondition(p, 'leadsTo(p)'),
    q: expectCondition(q, 'leadsTo(p, q)'),
    fair: expectFairness(fair, 'leadsTo(p, q, { fair })'),
  }
}

/**
 * From the start, or from each moment that satisfies `from`, `p` holds until `q` does, and `q` eventually holds. `p`
 * does not have to hold at the moment of `q`. For `fair`, see {@link leadsTo}.
 *
 * @example
 * const opens = ({ event }: Moment) => event.type === 'OPEN'
 * const property = until('open', 'closed', { from: opens, fair: ['CLOSE'] })
 * const { 'open until closed': report } = checkProperties(machine, { 'open until closed': property }, { alphabet })
 */
export function until<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
  q: MomentCondition<TMachine>,
  options: { from?: MomentCondition<TMachine>; fair?: Fairness } = {},
): Property<TMachine> {
  expectArgument('until(p, q, options)', options, optionsRule)
  const { from, fair = [] } = options
  return {
    kind: 'until',
    p: expectCondition(p, 'until(p)'),
    q: expectCondition(q, 'until(p, q)'),
    from: from === undefined ? undefined : expectCondition(from, 'until(p, q, { from })'),
    fair: expectFairness(fair, 'until(p, q, { fair })'),
  }
}

/**
 * `rank` never grows, and shrinks whenever the machine returns to the same state value, so no run continues
 * forever. Lists of numbers are compared lexicographically.
 *
 * @example checkProperties(machine, { 'doors are closed at last': decreases(({ value }) => (value === 'open' ? 1 : 0)) }, { alphabet })
 */
export function decreases<TMachine extends AnyStateMachine = AnyStateMachine>(
  rank: (moment: Moment<TMachine>) => number | readonly number[],
): Property<TMachine> {
  if (typeof rank === 'function') return { kind: 'decreases', rank }
  throw new PathError(
    'bad_option',
    'rank must be a function that takes a moment and returns a number.',
    'rank',
  )
}

/**
 * From every reachable state, or from each that satisfies `from`, a state that satisfies `q` can be reached.
 *
 * @example checkProperties(machine, { 'there is a way out': canReach(isFinal) }, { alphabet })
 */
export function canReach<TMachine extends AnyStateMachine = AnyStateMachine>(
  q: MomentCondition<TMachine>,
  options: { from?: MomentCondition<TMachine> } = {},
): Property<TMachine> {
  expectArgument('canReach(q, options)', options, optionsRule)
  const { from } = options
  return {
    kind: 'canReach',
    q: expectCondition(q, 'canReach(q)'),
    from: from === undefined ? undefined : expectCondition(from, 'canReach(q, { from })'),
  }
}

/**
 * Whether the machine is done. A condition for properties.
 *
 * @example checkProperties(machine, { 'there is a way out': canReach(isFinal) }, { alphabet })
 */
export const isFinal = (moment: { status: string }): boolean => {
  expectArgument('isFinal(moment)', moment, objectRule(['status'], 'a moment or a snapshot'))
  return moment.status === 'done'
}

function expectCondition<Condition>(condition: Condition, argument: string): Condition {
  if (typeof condition === 'function' || typeof condition === 'string') return condition
  const text = `${argument} must be a state's dotted path, or a function of the moment { value, context, event }.`
  throw new PathError('bad_option', text, argument)
}

function expectFairness(fair: Fairness, argument: string): Fairness {
  const isFine = fair === true || (Array.isArray(fair) && fair.every((type) => typeof type === 'string'))
  if (isFine) return fair
  throw new PathError('bad_option', `${argument} must be a list of event types, or true for all.`, argument)
}

/** @throws {PathError} `unknown_state`, with suggestions */
export function createStateTest(
  machine: AnyStateMachine,
  path: string,
): (snapshot: AnyMachineSnapshot) => boolean {
  const names = listStateNodes(machine).map(getStateName)
  if (!names.includes(path)) {
    const last = path.split('.').at(-1) ?? ''
    const close = names.filter((name) => name.split('.').at(-1)?.toLowerCase() === last.toLowerCase())
    const hint =
      close.length > 0 ? ` Did you mean ${close.join(' or ')}?` : ` It has ${names.slice(1).join(', ')}.`
    throw new PathError('unknown_state', `The machine has no state '${path}'.${hint}`, path)
  }
  if (path === '(root)') return () => true
  const value = pathToStateValue(path.split('.'))
  return (snapshot) => snapshot.matches(value)
}
