import { describeError } from '../core/base/errors.js'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine, InputFrom, SnapshotFrom } from 'xstate'
import { PathError } from './errors.js'
import { toJson } from '../core/base/json.js'
import { describeEvent, describeEventType, listTransitions } from '../core/chart/state-labels.js'

/** A list, with generated labels, or an object whose keys are the labels. */
export type NamedValues<T> = readonly T[] | Readonly<Record<string, T>>

/** Progress of an exploration. */
export interface ExploreProgress {
  states: number
  events: number
  /** States whose events have not been tried. */
  waiting: number
}

/**
 * Exploration options.
 *
 * @example
 * const options: ExploreOptions = {
 *   alphabet: { open: { type: 'OPEN' }, close: { type: 'CLOSE' } },
 *   limit: 5_000, // default 20,000 states
 *   serializeState: ({ context }) => String(context.signatures), // what guards read
 * }
 */
export interface ExploreOptions<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** Inputs to start from. They are explored together. Defaults to one start without input. */
  inputs?: NamedValues<InputFrom<TMachine>>
  /**
   * Events to try in every state, or a function of the state. Create actor events with {@link createDoneActorEvent}
   * and {@link createErrorActorEvent}. Actor events are tried only while the actor runs. `after` events do not have to
   * be listed.
   */
  alphabet: NamedValues<AnyEventObject> | ((snapshot: SnapshotFrom<TMachine>) => NamedValues<AnyEventObject>)
  /** Maximum number of distinct states before `state_limit`. Defaults to 20,000. */
  limit?: number
  /**
   * Serializes a snapshot. Snapshots with the same value, status and string count as one state. Defaults to context,
   * history and running actors. If the context contains counters or unique texts, return only what guards read.
   */
  serializeState?: (snapshot: SnapshotFrom<TMachine>) => string
  /** Called every 500 states and at the end. If it throws, the exploration stops. */
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
 * The event with which the actor `id` reports a failure. `error` should be plain JSON.
 *
 * @example
 * const alphabet = { failed: createErrorActorEvent('model', new Error('No connection.')) } // xstate.error.actor.model
 */
export function createErrorActorEvent(id: string, error?: unknown): AnyEventObject {
  return { type: `xstate.error.actor.${id}`, error, actorId: id }
}

/** `key` is the public name of the alphabet option. @throws {PathError} `bad_option` */
export function resolveSpace(options: ExploreOptions, key = 'alphabet'): ExploreSpace {
  if (typeof options !== 'object' || options === null) {
    throw badOptionError('options', 'an object with at least an alphabet')
  }
  const { inputs = [undefined], alphabet, limit = 20_000, serializeState, onProgress } = options
  if (!Number.isInteger(limit) || limit < 1) throw badOptionError('limit', 'a positive integer')
  for (const [name, callback] of Object.entries({ serializeState, onProgress })) {
    if (callback !== undefined && typeof callback !== 'function') throw badOptionError(name, 'a function')
  }
  return {
    inputs: nameInputs(inputs),
    listEvents: createEventLookup(alphabet, key),
    limit,
    toKey: serializeState ? createKeyFunction(serializeState) : createStateKey(),
    onProgress: onProgress ?? (() => undefined),
  }
}

/** The values with their labels. The values of a list have none. */
function listNamed<T>(option: string, values: NamedValues<T>, expected: string): [label: string, value: T][] {
  if (typeof values !== 'object' || values === null) throw badOptionError(option, expected)
  return Array.isArray(values) ? values.map((value: T) => ['', value]) : Object.entries<T>(values as never)
}

function nameInputs(inputs: NamedValues<unknown>): NamedInput[] {
  const named = listNamed('inputs', inputs, 'a list, or an object of named inputs')
  if (named.length === 0)
    throw badOptionError('inputs', 'at least one input; omit it for a machine without input')
  return named.map(([label, value], i) => ({ label: label || `input ${i + 1}`, value }))
}

function createEventLookup(alphabet: ExploreOptions['alphabet'], key: string): ExploreSpace['listEvents'] {
  if (typeof alphabet === 'function')
    return (snapshot) => {
      const where = (): string => `The ${key} threw in state ${JSON.stringify(snapshot.value)}`
      const events = callOption(key, () => alphabet(snapshot), where)
      return nameEvents(events, key)
    }
  const events = nameEvents(alphabet, key)
  return () => events
}

function callOption<Value>(option: string, call: () => Value, where: () => string): Value {
  try {
    return call()
  } catch (cause) {
    throw new PathError('bad_option', `${where()}: ${describeError(cause)}`, option, { cause })
  }
}

function nameEvents(events: NamedValues<AnyEventObject>, key: string): NamedEvent[] {
  const expected = 'a list of events, an object of named events, or a function that returns one'
  return listNamed(key, events, expected).map(([label, event]) => {
    if (typeof event?.type !== 'string' || event.type === '') {
      const found = JSON.stringify(toJson(event))
      throw badOptionError(key, `made of events with a type, but contains ${found}`)
    }
    return { event, label: label || describeEvent(event) }
  })
}

function createKeyFunction(
  serializeState: NonNullable<ExploreOptions['serializeState']>,
): ExploreSpace['toKey'] {
  return (snapshot) => {
    const call = (): unknown => serializeState(snapshot)
    const key = callOption('serializeState', call, () => 'serializeState threw')
    if (typeof key !== 'string') throw badOptionError('serializeState', 'a function that returns a string')
    return `${JSON.stringify(snapshot.value)} ${snapshot.status} ${key}`
  }
}

function badOptionError(option: string, expected: string): PathError {
  return new PathError('bad_option', `The option '${option}' must be ${expected}.`, option)
}

/** The default `serializeState`: everything that determines a snapshot's future. */
export function createStateKey(): (snapshot: AnyMachineSnapshot) => string {
  const write = createWriter()
  return ({ value, status, context, historyValue, children }) => {
    const where = `${JSON.stringify(value)} ${status}\n${write(context)}`
    // An ended machine has no future.
    if (status !== 'active') return where
    const history = Object.entries(historyValue as Record<string, { id: string }[]>).map(
      ([id, nodes]) => `${id}=${nodes.map((node) => node.id).join('+')}`,
    )
    const actors = Object.keys(children).map(stableId).sort()
    return [where, history.sort().join(), actors.join()].join('\n')
  }
}

/**
 * Creates a serializer that writes equal values as equal texts. Keys are sorted. Map, Set, Date, Error and bigint are
 * compared by content, and actors by id. Functions are ignored. Objects are cached by identity, so actions must not
 * mutate the context (an XState rule).
 */
export function createWriter(): (value: unknown) => string {
  const known = new WeakMap<object, string>()
  const open = new Set<object>()

  function write(value: unknown): string {
    if (typeof value === 'string') return JSON.stringify(value)
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value === 'function') return 'function'
    if (typeof value !== 'object' || value === null) return String(value)
    const before = known.get(value)
    if (before !== undefined) return before
    if (open.has(value)) {
      const text = 'The context contains a circular reference, so its states cannot be compared.'
      const advice = 'Keep plain data in it, or pass serializeState.'
      throw new PathError('unserializable_state', `${text} ${advice}`, 'serializeState')
    }
    open.add(value)
    const text = writeObject(value)
    open.delete(value)
    known.set(value, text)
    return text
  }

  function writeObject(value: object): string {
    if (Array.isArray(value)) return `[${value.map(write).join()}]`
    if (value instanceof Map) return `Map[${[...value].map(write).join()}]`
    if (value instanceof Set) return `Set[${[...value].map(write).join()}]`
    if (value instanceof Error) return `Error${write([value.name, value.message])}${writeEntries(value)}`
    if (isActor(value)) return `actor ${stableId(value.id)}`
    if ('toJSON' in value && typeof value.toJSON === 'function') return write(value.toJSON())
    return writeEntries(value)
  }

  function writeEntries(value: object): string {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${entries.map(([key, part]) => `${JSON.stringify(key)}:${write(part)}`).join()}}`
  }

  return (value) => {
    open.clear()
    return write(value)
  }
}

export function isActor(value: object): value is { id: string } {
  return 'sessionId' in value && 'send' in value && 'id' in value
}

/** XState numbers anonymous actors across the whole process, so their numbers are not part of the state. */
function stableId(id: string): string {
  return /^x:\d+$/.test(id) ? 'x' : id
}

/** Every declared event once, without a payload, except wildcards and events that the machine raises itself. */
export function createBareEvents(machine: AnyStateMachine): Record<string, AnyEventObject> {
  const types = new Set(listTransitions(machine).map(({ declared }) => declared.event))
  const events: Record<string, AnyEventObject> = {}
  for (const type of types) {
    if (type === '' || type.includes('*') || type.startsWith('xstate.after.')) continue
    const [, ending, actor = ''] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? []
    const create = ending === 'done' ? createDoneActorEvent : createErrorActorEvent
    events[describeEventType(type)] = ending ? create(actor) : { type }
  }
  return events
}
