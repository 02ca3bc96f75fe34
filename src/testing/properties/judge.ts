import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { describeState } from '../../core/chart/state-labels.js'
import { PathError, getErrorMessage } from '../errors.js'
import { createStateTest } from '../state-condition.js'
import type { Moment, MomentCondition, Property } from './property.js'

/** Asks the conditions of one property about moments. What they throw becomes an error that names the property. */
export interface Judge {
  name: string
  property: Property
  /** The user's name for what has to come: a state, or a function. */
  goal: string
  /** A condition that the property does not have is false. */
  ask: (condition: 'p' | 'q' | 'from', moment: Moment) => boolean
  /** The rank of `decreases`. */
  rank: (moment: Moment) => readonly number[]
}

/** @throws {PathError} `unknown_state` */
export function createJudge(machine: AnyStateMachine, name: string, property: Property): Judge {
  const conditions = {
    p: compile('p' in property ? property.p : undefined),
    q: compile('q' in property ? property.q : undefined),
    from: compile('from' in property ? property.from : undefined),
  }

  function compile(condition: MomentCondition | undefined): (moment: Moment) => unknown {
    if (condition === undefined) return () => false
    if (typeof condition === 'function') return condition
    const isThere = createStateTest(machine, condition)
    return ({ snapshot }) => isThere(snapshot)
  }

  function call<Value>(ask: (moment: Moment) => Value, moment: Moment): Value {
    try {
      return ask(moment)
    } catch (cause) {
      const where = `after ${moment.event.type} in ${describeState(moment.snapshot)}`
      const text = `The property '${name}' threw ${where}: ${getErrorMessage(cause)}`
      throw new PathError('property_threw', text, name, { cause })
    }
  }

  return {
    name,
    property,
    goal: 'q' in property ? nameCondition(property.q) : '',
    ask: (condition, moment) => {
      const answer = call(conditions[condition], moment)
      if (typeof answer === 'boolean') return answer
      const found =
        typeof answer === 'object' && answer !== null && 'then' in answer ? 'a promise' : typeof answer
      const text = `The property '${name}' must answer true or false at once, but a condition of it returned ${found}.`
      throw new PathError('bad_option', text, name)
    },
    rank: (moment) => {
      if (property.kind !== 'decreases') return []
      const rank: unknown = call(property.rank, moment)
      const numbers = [rank].flat()
      if (numbers.every((number): number is number => typeof number === 'number' && !Number.isNaN(number)))
        return numbers
      const text = `The rank of the property '${name}' must be a number, or a list of numbers.`
      throw new PathError('bad_option', text, name)
    },
  }
}

export function createMoment(snapshot: AnyMachineSnapshot, event: AnyEventObject): Moment {
  const { value, status } = snapshot
  return { value, context: snapshot.context as unknown, status, event, snapshot }
}

/** The event of a start, as paths have it. */
export function createStartEvent(input: unknown): AnyEventObject {
  return input === undefined ? { type: 'xstate.init' } : { type: 'xstate.init', input }
}

/** Compares ranks number by number: below 0 when `one` is smaller. */
export function compareRanks(one: readonly number[], other: readonly number[]): number {
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Which event types have to happen; undefined when none has to. */
export function createFairTest(property: Property): ((type: string) => boolean) | undefined {
  if (!('fair' in property)) return undefined
  const { fair } = property
  if (fair === true) return () => true
  if (fair.length === 0) return undefined
  return (type) => fair.some((pattern) => matchesType(pattern, type))
}

/** `xstate.done.actor.*` is every type that begins so. */
export function matchesType(pattern: string, type: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

function nameCondition(condition: MomentCondition): string {
  if (typeof condition === 'string') return `'${condition}'`
  // An object's key is the name of a function that is written there.
  return ['', 'q'].includes(condition.name) ? 'the condition' : condition.name
}
