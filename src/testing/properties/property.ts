import {
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type SnapshotFrom,
  pathToStateValue,
} from 'xstate'
import { PathError } from '../errors.js'
import { getStateName, listStateNodes } from '../../core/chart/transitions.js'

/**
 * What a property looks at: the state after an event, and that event. At a start the event is `xstate.init`.
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
  /** The same as XState's snapshot: `snapshot.matches(…)`, `snapshot.output`. */
  snapshot: SnapshotFrom<TMachine>
}

/** Some moments: the dotted path of a state (`RUNNING.asking`), or a function that returns true or false. */
export type MomentCondition<TMachine extends AnyStateMachine = AnyStateMachine> =
  | string
  | ((moment: Moment<TMachine>) => boolean)

/**
 * Which events happen in the end if they stay possible: their types, a pattern of types (`xstate.done.actor.*`), or true
 * for all. A run in which such an event stays possible for ever without happening does not count.
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
  canReach: { q: MomentCondition<TMachine> }
  decreases: { rank: (moment: Moment<TMachine>) => number | readonly number[] }
}

/** What `always`, `never`, `leadsTo`, `until`, `canReach` and `decreases` make for {@link checkProperties}. */
export type Property<TMachine extends AnyStateMachine = AnyStateMachine> = {
  [Kind in keyof Parts<TMachine>]: { readonly kind: Kind } & Readonly<Parts<TMachine>[Kind]>
}[keyof Parts<TMachine>]

/**
 * At every moment of every run, `p` holds.
 *
 * @example checkProperties(machine, { 'a door is open or closed': always(({ value }) => value === 'open' || value === 'closed') }, { alphabet })
 */
export function always<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
): Property<TMachine> {
  return { kind: 'always', p: expectCondition(p, 'always(p)') }
}

/**
 * At no moment of any run, `p` holds.
 *
 * @example checkProperties(machine, { 'OPEN never closes': never(({ value, event }) => event.type === 'OPEN' && value === 'closed') }, { alphabet })
 */
export function never<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
): Property<TMachine> {
  return { kind: 'never', p: expectCondition(p, 'never(p)') }
}

/**
 * Whenever `p` holds, `q` holds then or later. A run may rest in any state for ever, unless an event that is `fair` is
 * possible there. Without `fair`, nothing has to happen.
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
  { fair = [] }: { fair?: Fairness } = {},
): Property<TMachine> {
  return {
    kind: 'leadsTo',
    p: expectCondition(p, 'leadsTo(p)'),
    q: expectCondition(q, 'leadsTo(p, q)'),
    fair: expectFairness(fair, 'leadsTo(p, q, { fair })'),
  }
}

/**
 * From the start, or from each moment that is `from`, `p` holds until `q` does, and `q` comes. At the moment of `q`, `p`
 * need not hold. For `fair` see {@link leadsTo}.
 *
 * @example
 * const opens = ({ event }: Moment) => event.type === 'OPEN'
 * const property = until('open', 'closed', { from: opens, fair: ['CLOSE'] })
 * const { 'open until closed': report } = checkProperties(machine, { 'open until closed': property }, { alphabet })
 */
export function until<TMachine extends AnyStateMachine = AnyStateMachine>(
  p: MomentCondition<TMachine>,
  q: MomentCondition<TMachine>,
  { from, fair = [] }: { from?: MomentCondition<TMachine>; fair?: Fairness } = {},
): Property<TMachine> {
  return {
    kind: 'until',
    p: expectCondition(p, 'until(p)'),
    q: expectCondition(q, 'until(p, q)'),
    from: from === undefined ? undefined : expectCondition(from, 'until(p, q, { from })'),
    fair: expectFairness(fair, 'until(p, q, { fair })'),
  }
}

/**
 * Whenever the machine comes back to the same state value, `rank` has become smaller on the way, and it never grows. So no
 * run goes on for ever. A list of numbers is compared from its first number on, as words are.
 *
 * @example checkProperties(machine, { 'doors are closed at last': decreases(({ value }) => (value === 'open' ? 1 : 0)) }, { alphabet })
 */
export function decreases<TMachine extends AnyStateMachine = AnyStateMachine>(
  rank: (moment: Moment<TMachine>) => number | readonly number[],
): Property<TMachine> {
  if (typeof rank === 'function') return { kind: 'decreases', rank }
  throw new PathError(
    'bad_option',
    'decreases(rank) must be a function of the moment that returns numbers.',
    'rank',
  )
}

/** The part of `canReach` that makes a property. */
export function createReachProperty<TMachine extends AnyStateMachine>(
  q: MomentCondition<TMachine>,
): Property<TMachine> {
  return { kind: 'canReach', q: expectCondition(q, 'canReach(q)') }
}

function expectCondition<Condition>(condition: Condition, argument: string): Condition {
  if (typeof condition === 'function' || typeof condition === 'string') return condition
  const text = `${argument} must be the dotted path of a state, or a function of the moment { value, context, event }.`
  throw new PathError('bad_option', text, argument)
}

function expectFairness(fair: Fairness, argument: string): Fairness {
  const isFine = fair === true || (Array.isArray(fair) && fair.every((type) => typeof type === 'string'))
  if (isFine) return fair
  throw new PathError('bad_option', `${argument} must be a list of event types, or true for all.`, argument)
}

/**
 * Whether a snapshot is in the state of this dotted path.
 * @throws {PathError} `unknown_state`, with what was meant
 */
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
