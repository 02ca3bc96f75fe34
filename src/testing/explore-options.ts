import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine, InputFrom, SnapshotFrom } from 'xstate'
import { PathError, getErrorMessage } from './errors.js'
import { describeEvent } from '../core/chart/state-labels.js'
import { createStateKey } from './state-key.js'

/** A list, which labels itself, or an object whose keys are the labels that people read. */
export type NamedValues<T> = readonly T[] | Readonly<Record<string, T>>

/** How far an exploration has come. */
export interface ExploreProgress {
  /** Distinct states found. */
  states: number
  /** Events tried. */
  events: number
  /** States whose events are still to be tried. */
  waiting: number
}

/**
 * What a machine is explored with.
 *
 * @example
 * const options: ExploreOptions = {
 *   alphabet: { open: { type: 'OPEN' }, close: { type: 'CLOSE' } },
 *   limit: 5_000, // default 20,000 states
 *   serializeState: ({ context }) => String(context.signatures), // what guards read
 * }
 */
export interface ExploreOptions<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** The inputs to start from, one exploration for all. Default: one start without input. */
  inputs?: NamedValues<InputFrom<TMachine>>
  /**
   * The events to try, in every state or as a function of it. Events of actors are written with {@link createDoneActorEvent} and
   * {@link createErrorActorEvent} and are tried only while their actor runs; `after` events are tried without being listed.
   */
  alphabet: NamedValues<AnyEventObject> | ((snapshot: SnapshotFrom<TMachine>) => NamedValues<AnyEventObject>)
  /** The most distinct states to visit before giving up with `state_limit`. Default 20,000. */
  limit?: number
  /**
   * Snapshots with the same value, status and string are one state. Default: context, history and running actors.
   * Give one that keeps only what guards read when the context holds counters or texts that never repeat.
   */
  serializeState?: (snapshot: SnapshotFrom<TMachine>) => string
  /** Called every 500 states and at the end. What it throws stops the exploration. */
  onProgress?: (progress: ExploreProgress) => void
}

export interface NamedInput {
  label: string
  value: unknown
}

export interface NamedEvent {
  label: string
  event: AnyEventObject
}

/** The options, checked and with their defaults. */
export interface ExploreSpace {
  inputs: NamedInput[]
  listEvents: (snapshot: AnyMachineSnapshot) => NamedEvent[]
  limit: number
  toKey: (snapshot: AnyMachineSnapshot) => string
  onProgress: (progress: ExploreProgress) => void
}

/**
 * The event with which the actor `id` reports its output.
 *
 * @example
 * const alphabet = { answered: createDoneActorEvent('model', { text: 'Hi.' }) } // xstate.done.actor.model
 */
export function createDoneActorEvent(id: string, output?: unknown): AnyEventObject {
  return { type: `xstate.done.actor.${id}`, output, actorId: id }
}

/**
 * The event with which the actor `id` reports that it failed. Keep `error` plain JSON.
 *
 * @example
 * const alphabet = { failed: createErrorActorEvent('model', new Error('No connection.')) } // xstate.error.actor.model
 */
export function createErrorActorEvent(id: string, error?: unknown): AnyEventObject {
  return { type: `xstate.error.actor.${id}`, error, actorId: id }
}

/**
 * `key`: what the alphabet is called where the options come from.
 * @throws {PathError} `bad_option`
 */
export function resolveSpace(options: ExploreOptions, key = 'alphabet'): ExploreSpace {
  if (typeof options !== 'object' || options === null) {
    throw badOptionError('options', 'an object with at least an alphabet')
  }
  const { inputs = [undefined], alphabet, limit = 20_000, serializeState, onProgress } = options
  if (!Number.isInteger(limit) || limit < 1)
    throw badOptionError('limit', 'a whole number of states, 1 or more')
  for (const [name, callback] of Object.entries({ serializeState, onProgress })) {
    if (callback !== undefined && typeof callback !== 'function') throw badOptionError(name, 'a function')
  }
  return {
    inputs: nameInputs(inputs),
    listEvents: createEventLookup(alphabet, key),
    limit,
    toKey: createKeyFunction(serializeState as ((snapshot: AnyMachineSnapshot) => string) | undefined),
    onProgress: onProgress ?? (() => undefined),
  }
}

function nameInputs(inputs: NamedValues<unknown>): NamedInput[] {
  if (typeof inputs !== 'object' || inputs === null)
    throw badOptionError('inputs', 'a list, or an object of named inputs')
  const named = Array.isArray(inputs)
    ? inputs.map((value: unknown, i) => ({ label: `input ${i + 1}`, value }))
    : Object.entries(inputs).map(([label, value]) => ({ label, value }))
  if (named.length === 0)
    throw badOptionError('inputs', 'at least one input; leave it out for a machine without input')
  return named
}

function createEventLookup(alphabet: ExploreOptions['alphabet'], key: string): ExploreSpace['listEvents'] {
  if (typeof alphabet !== 'function') {
    const events = nameEvents(alphabet, key)
    return () => events
  }
  return (snapshot) => {
    let events: NamedValues<AnyEventObject>
    try {
      events = alphabet(snapshot)
    } catch (cause) {
      const reason = `The ${key} threw in state ${JSON.stringify(snapshot.value)}: ${getErrorMessage(cause)}`
      throw new PathError('bad_option', reason, key, { cause })
    }
    return nameEvents(events, key)
  }
}

function nameEvents(events: NamedValues<AnyEventObject>, key: string): NamedEvent[] {
  if (typeof events !== 'object' || events === null) {
    throw badOptionError(key, 'a list of events, an object of named events, or a function that returns one')
  }
  const named = Array.isArray(events)
    ? events.map((event: AnyEventObject) => ({ event, label: '' }))
    : Object.entries(events).map(([label, event]) => ({ event, label }))
  for (const entry of named) {
    if (typeof entry.event?.type !== 'string' || entry.event.type === '') {
      throw badOptionError(key, `made of events with a type, unlike ${toSafeText(entry.event)}`)
    }
    entry.label ||= describeEvent(entry.event)
  }
  return named
}

function createKeyFunction(
  serializeState: ((snapshot: AnyMachineSnapshot) => string) | undefined,
): ExploreSpace['toKey'] {
  if (serializeState === undefined) return createStateKey()
  return (snapshot) => {
    let key: unknown
    try {
      key = serializeState(snapshot)
    } catch (cause) {
      const reason = `serializeState threw: ${getErrorMessage(cause)}`
      throw new PathError('bad_option', reason, 'serializeState', { cause })
    }
    if (typeof key !== 'string') throw badOptionError('serializeState', 'a function that returns a string')
    return `${JSON.stringify(snapshot.value)} ${snapshot.status} ${key}`
  }
}

function badOptionError(option: string, expected: string): PathError {
  return new PathError('bad_option', `The option '${option}' must be ${expected}.`, option)
}

function toSafeText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}
