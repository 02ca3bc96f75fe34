import type { MachinePath } from '../machine-path.js'
import { createWriter } from '../state-key.js'

/** Where the contexts of two machines part. */
export interface ContextParting {
  /** The number of the step, 0 for the start. */
  step: number
  /** What people call its event. */
  label: string
  /** The keys of the context that differ, by their dotted paths. At most five. */
  keys: string[]
}

const maxKeys = 5
const maxNesting = 4

/** The first step after which the contexts differ, if it is not the last. */
export function findContextParting(before: MachinePath, after: MachinePath): ContextParting | null {
  const write = createWriter()
  for (const [step, { state, label }] of before.steps.slice(0, -1).entries()) {
    const keys = listDifferences(state.context, after.steps[step]?.state.context, write)
    if (keys.length > 0) return { step, label, keys: keys.slice(0, maxKeys) }
  }
  return null
}

function listDifferences(
  one: unknown,
  other: unknown,
  write: (value: unknown) => string,
  path = '',
  depth = 0,
): string[] {
  if (write(one) === write(other)) return []
  if (depth >= maxNesting || !isRecord(one) || !isRecord(other) || !isAlike(one, other))
    return [path === '' ? '(all)' : path]
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])]
  return names.flatMap((name) =>
    listDifferences(one[name], other[name], write, path === '' ? name : `${path}.${name}`, depth + 1),
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !('sessionId' in value && 'send' in value)
}

/** Lists are compared item by item if they are of one length. */
function isAlike(one: object, other: object): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return Array.isArray(one) === Array.isArray(other)
  return one.length === other.length
}
