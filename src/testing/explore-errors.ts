import { PathError, getErrorMessage } from './errors.js'
import type { Vertex } from './machine-path.js'
import { describeState } from '../core/chart/state-labels.js'
import type { ObservedMachine } from '../core/chart/observe-machine.js'
import { createPathTo, formatPath } from './machine-path.js'
import type { NamedEvent, NamedInput } from './explore-options.js'
import { createWriter } from './state-key.js'

/** Converts an error of the machine into one that names the faulty part and the path to it. */
export function toMachineError(
  observed: ObservedMachine,
  error: unknown,
  input: NamedInput,
  from: Vertex | undefined,
  event: NamedEvent | undefined,
): PathError {
  const where =
    from && event
      ? `on ${event.label} in ${describeState(from.snapshot)}`
      : `at the start with ${input.label}`
  const way = from && from.depth > 0 ? `\nThe way there:\n${formatPath(createPathTo(from))}` : ''
  const options = { cause: error }
  const broken = observed.brokenGuard()
  if (broken) {
    const { guard, id } = broken.declared
    const missing = /^Guard '(.+?)' is not implemented/.exec(getErrorMessage(broken.error))?.[1]
    if (missing !== undefined) {
      const text = `The guard '${missing}' has no implementation. Give one in setup({ guards }) or machine.provide().`
      return new PathError('guard_missing', text, missing, options)
    }
    const text = `The guard '${guard}' threw ${where}: ${getErrorMessage(broken.error)}\nTransition: ${id}${way}`
    return new PathError('guard_threw', text, guard ?? undefined, options)
  }
  const message = getErrorMessage(error)
  if (message.startsWith('Infinite loop detected')) {
    const text = `The machine never comes to rest ${where}: its always transitions or raised events go round for ever.`
    return new PathError('endless_loop', text + way, undefined, options)
  }
  const text = `An action, or a function that makes input or context, threw ${where}: ${message}${way}`
  return new PathError('action_threw', text, undefined, options)
}

/** The error for too many states. It names the keys of the context that keep growing. */
export function stateLimitError(limit: number, vertices: readonly Vertex[]): PathError {
  const growing = listGrowingKeys(vertices)
  const cause =
    growing.length > 0
      ? `These keys of the context keep taking new values: ${growing.join(', ')}. Bound them`
      : 'No single key of the context keeps growing: their combinations do. Offer fewer events, raise the limit'
  return new PathError(
    'state_limit',
    `Stopped at the limit of ${limit} states; ${vertices.length} were seen, the deepest ${vertices.at(-1)?.depth ?? 0} ` +
      `events from the start. ${cause}, or pass a serializeState that keeps only what guards read.`,
    'limit',
  )
}

const maxShownKeys = 5
const maxNesting = 4

/** Keys that still take new values in the later half of the exploration, the most varied first. */
function listGrowingKeys(vertices: readonly Vertex[]): string[] {
  const write = createWriter()
  const values = new Map<string, { all: Set<string>; early: number }>()

  function note(key: string, value: unknown, depth: number): void {
    if (depth < maxNesting && isRecord(value)) {
      for (const [name, part] of Object.entries(value))
        note(key === '' ? name : `${key}.${name}`, part, depth + 1)
      return
    }
    const seen = values.get(key) ?? { all: new Set<string>(), early: 0 }
    values.set(key, seen)
    seen.all.add(write(value))
  }

  vertices.forEach((vertex, i) => {
    if (i === Math.floor(vertices.length / 2)) for (const seen of values.values()) seen.early = seen.all.size
    note('', vertex.snapshot.context, 0)
  })
  return [...values]
    .filter(([key, { all, early }]) => key !== '' && early > 1 && all.size > early)
    .sort(([, a], [, b]) => b.all.size - a.all.size)
    .slice(0, maxShownKeys)
    .map(([key, { all }]) => `${key} (${all.size} values)`)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('sessionId' in value)
}

/** The error for a serializeState that takes different states for one. */
export function coarseStatesError(input: string, label: string, expected: string, actual: string): PathError {
  return new PathError(
    'coarse_states',
    `serializeState takes states for one that differ: starting with ${input}, '${label}' should have led to ` +
      `${expected}, but led to ${actual}. Keep in its string whatever guards read.`,
    'serializeState',
  )
}
