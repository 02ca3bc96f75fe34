import type { AnyMachineSnapshot } from 'xstate'
import { PathError } from './errors.js'

/**
 * Creates the default `serializeState`: everything that the future of a snapshot depends on — state value, status,
 * context, history, and which actors run — as one string.
 */
export function createStateKey(): (snapshot: AnyMachineSnapshot) => string {
  const write = createWriter()
  return ({ value, status, context, historyValue, children }) => {
    const where = `${JSON.stringify(value)} ${status}\n${write(context)}`
    // What has ended goes nowhere, whatever came before.
    if (status !== 'active') return where
    const history = Object.entries(historyValue as Record<string, { id: string }[]>).map(
      ([id, nodes]) => `${id}=${nodes.map((node) => node.id).join('+')}`,
    )
    const actors = Object.keys(children).map(stableId).sort()
    return [where, history.sort().join(), actors.join()].join('\n')
  }
}

/**
 * Creates a function that writes values so that equal ones have equal texts.
 *
 * Keys are sorted; Map, Set, Date, Error and bigint count by content, actors by id; functions are not compared.
 * Objects are remembered by identity, so actions must not change the context in place (XState's own rule).
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
    if (open.has(value)) throw circularError()
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

function isActor(value: object): value is { id: string } {
  return 'sessionId' in value && 'send' in value && 'id' in value
}

/** XState numbers actors without an id through the whole process: such a number says nothing about the state. */
function stableId(id: string): string {
  return /^x:\d+$/.test(id) ? 'x' : id
}

function circularError(): PathError {
  return new PathError(
    'unserializable_state',
    'The context refers to itself, so its states cannot be compared. Keep plain data in it, or pass serializeState.',
    'serializeState',
  )
}
